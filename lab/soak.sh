#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs in the guest: soak.sh KIND MISSES SUM. Misses of fast mappings under memory pressure until there were so many, then
# everything is given back. Leaves counters, the kernel's log and what the debugging options found in /job/out.
kind=$1 misses=$2 sum=$3
hwdp=/sys/kernel/mm/hwdp
work=/data/soak
out=/job/out

fail() { echo "soak: $*" >>$out/failures; }
stat() { awk -v name="$1" '$1 == name { print $2 }' $hwdp/stats; }
count() { stat pages_adopted; }
# Frames of the ring that are allocated, with the stacks of who did. The file gives whole records to large reads alone.
owned() { dd if=/sys/kernel/debug/page_owner bs=4k 2>/dev/null | awk -v RS= '/hwdp_refill/' >$1; }
note() { echo "soak: $*"; echo "$*" >>$out/notes; }

mkdir -p $work
: >$out/failures
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
[ -e $hwdp/stats ] || { fail "this kernel has no hardware paging"; exit 1; }
# Before the first frame is taken.
echo 3 >/proc/sys/vm/drop_caches
cp /proc/meminfo $out/meminfo.before

verify="--name=verify --filename=$work/verified --bs=4k --size=16M --verify=crc32c --verify_fatal=1 --thread --eta=never"
fio $verify --rw=write --do_verify=0 --ioengine=psync --end_fsync=1 >$out/fio-write.txt 2>&1 || fail "fio cannot write"

# Memory, mappings, faults and advice of all sorts, each over files of the data disk, for as long as the readers run. They
# take what the readers leave of the harts.
sh -c 'renice -n 10 -p $$ >/dev/null && exec "$@"' sh \
	hwdp -k $kind -- stress-ng --temp-path $work --mmap 1 --mmap-file --mmap-bytes 8m --fault 1 --madvise 1 \
	--vm 1 --vm-bytes 16m --vm-method incdec --timeout 0 --oom-avoid >$out/stress.txt 2>&1 &
stress=$!

round=0
while [ "$(count)" -lt "$misses" ]; do
	round=$((round + 1))
	order=split
	[ $((round % 3)) = 0 ] && order=shuffle
	got=$(hwdp -k $kind -f /data/ -- mapsum -t 4 -o $order /data/random.bin) || fail "round $round: mapsum failed"
	[ "$got" = "$sum" ] || fail "round $round: mapsum read $got instead of $sum"
	hwdp -k $kind -f /data/ -s -- fio $verify --rw=randread --numjobs=2 --ioengine=mmap --invalidate=1 \
		>$out/fio-read.txt 2>&1 || { fail "round $round: fio does not verify"; cp $out/fio-read.txt $out/fio-bad.txt; }
	kill -0 $stress 2>/dev/null || { fail "stress-ng ended early"; break; }
	note "round $round: $(count) pages by $kind"
done
kill -TERM $stress
wait $stress

owner=
[ -e /sys/kernel/debug/page_owner ] && owner=1
[ -z "$owner" ] || owned $out/page_owner.before

# All areas are gone with their programs. Setting the depth takes the rings' frames back; then none may be out.
echo 0 >$hwdp/enabled
sleep 2
echo 1024 >$hwdp/ring_depth || fail "the rings do not give their frames back"
rm -rf $work
sync
echo 3 >/proc/sys/vm/drop_caches
sleep 1
echo 3 >/proc/sys/vm/drop_caches
cp $hwdp/stats $out/stats
cp /proc/meminfo $out/meminfo.after
cp /proc/vmstat $out/vmstat
if [ -e /sys/kernel/debug/kmemleak ]; then
	# An object is reported when two scans, some seconds after it was made, find no reference.
	echo scan >/sys/kernel/debug/kmemleak
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak >$out/kmemleak
fi
[ -z "$owner" ] || owned $out/page_owner
dmesg >$out/dmesg
exit 0
