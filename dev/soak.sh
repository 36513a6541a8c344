#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs in the guest: soak.sh KIND MISSES SUM SEED [SUM OF THE DRIVE THAT HANGS]. Causes misses of hwdp mappings under memory
# pressure, until there were MISSES of them and every part of the mix has worked; then all frames are given back. Writes to
# /job/out: counters, the kernel's log, the counts of the parts, and the reports of the debugging options.
# shellcheck disable=SC2086,SC2231 # every variable is one word, or words that the shell is to split
# shellcheck disable=SC2317 # `beside` and the loop over sparing and progress call functions by name
kind=$1 misses=$2 sum=$3 seed=$4 hung_sum=$5
hwdp=/sys/kernel/mm/hwdp
blocks=/sys/devices/system/memory
work=/data/soak
out=/job/out
mix=$out/mix
readers='' reset=''
last=5 # additional rounds, after enough misses, for parts that have not worked yet

fail() { echo "soak: $*"; echo "soak: $*" >>$out/failures; }
stat() { awk -v name="$1" '$1 == name { print $2 }' $hwdp/stats; }
count() { stat pages_adopted; }
# Stacks that allocated frames of the ring, with the number of frames.
stacks=/sys/kernel/debug/page_owner_stacks/show_stacks
owned() { awk -v RS= '/hwdp_refill/' $stacks >$1; }
note() {
	read -r now _ </proc/uptime
	echo "soak: $now s: $*"
	echo "$now s: $*" >>$out/notes
}
report_after() { [ ! -e /proc/sys/kernel/$1 ] || echo $2 >/proc/sys/kernel/$1; }
# Become a command that gets only the time that others leave. It replaces this shell, so that signals reach the command.
nicely() { exec sh -c 'renice -n 10 -p $$ >/dev/null && exec "$@"' sh "$@"; }

# Start a part of soak_mix: its counts are in $mix/NAME, its processes in $parts. It has a separate file, because hardware serves
# one mapping of a file at a time, and the readers need theirs.
own_file() { head -c $(($2 << 20)) /data/random.bin >$work/$1.bin || fail "no room for the file of $1"; }
parts=
part() {
	name=$1
	shift
	echo "$name 0" >$mix/$name
	nicely hwdp -k $kind -f /data/ -- ./soak_mix $name $mix/$name $seed $work/$name.bin "$@" 2>>$out/failures &
	parts="$parts $!"
}

# Mount the drive that hangs; its file system has the label `hung`.
mount_hung() {
	for disk in /sys/block/nvme*n*; do
		[ "$(dd if=/dev/${disk##*/} bs=1 skip=1144 count=4 2>/dev/null)" = hung ] || continue
		reset=$disk/device/reset_controller
		mkdir -p /tmp/hung && mount -r -t ext4 /dev/${disk##*/} /tmp/hung && return
	done
	fail "no drive that hangs"
}
read_hung() {
	rounds=0
	while [ ! -e $work/over ]; do
		got=$(hwdp -k $kind -f /tmp/hung/ -- mapsum -t 2 -o shuffle /tmp/hung/random.bin) || fail "hung drive: mapsum failed"
		[ "$got" = "$hung_sum" ] || fail "hung drive: mapsum read $got instead of $hung_sum"
		rounds=$((rounds + 1))
		echo "hung_rounds $rounds" >$mix/hung
		echo 1 >/proc/sys/vm/drop_caches
		sleep 1
	done
}

# stress-ng, in a separate group, runs for a tenth of the time: otherwise it would take all the time that misses need.
signal_stress() { kill -$1 -$stress 2>/dev/null; }
sparing() {
	while [ ! -e $work/over ]; do
		sleep 0.3
		signal_stress STOP
		sleep 2.7
		signal_stress CONT
	done
}

# A round of the readers may take long.
progress() {
	while [ ! -e $work/over ]; do
		sleep 20
		note "$(count) pages by $kind, $(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) kB of memory available"
	done
}

# Take memory offline and online again. It is offline most of the time, so that the others are short of memory.
offline() {
	times=0 failed=0
	while [ ! -e $work/over ]; do
		for block in $blocks/memory[0-9]*; do
			read -r zones <$block/valid_zones
			read -r state <$block/state
			[ $state = online ] || continue
			case $zones in *Movable*) ;; *) continue ;; esac
			if timeout 20 sh -c "echo offline >$block/state" 2>/dev/null; then
				times=$((times + 1))
			else
				failed=$((failed + 1))
				continue
			fi
			echo "memory_offline $times" >$mix/offline
			sleep 2
			echo online_movable >$block/state || fail "memory does not come back"
		done
		sleep 1
	done
	note "memory went $times times, and was in use $failed times"
}
compact() {
	times=0
	while [ ! -e $work/over ]; do
		echo 1 >/proc/sys/vm/compact_memory
		echo "compactions $((times += 1))" >$mix/compact
		sleep 5
	done
}
beside() {
	echo "$1 0" >$mix/$1
	"$2" &
	readers="$readers $!"
}
idle_parts() { for each in $mix/*; do awk '$2 == 0 { print $1 }' $each; done; }

mkdir -p $work $mix
: >$out/failures
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
[ -e $hwdp/stats ] || { fail "this kernel has no hardware paging"; exit 1; }
# Code that keeps a hart for more than a second must be reported as soon as possible, if the kernel has the check.
report_after watchdog_thresh 1
report_after hung_task_timeout_secs 20
# kmemleak's thread scans at a low priority in one RCU read-side section; under such load this is reported as a stall.
[ ! -e /sys/kernel/debug/kmemleak ] || echo scan=off >/sys/kernel/debug/kmemleak
# Before the first frame is taken.
echo 3 >/proc/sys/vm/drop_caches
cp /proc/meminfo $out/meminfo.before

verify="--name=verify --filename=$work/verified --bs=4k --size=8M --verify=crc32c --verify_fatal=1 --thread --eta=never"
fio $verify --rw=write --do_verify=0 --ioengine=psync --end_fsync=1 >$out/fio-write.txt 2>&1 || fail "fio cannot write"

# Made before others fill the disk. Sizes in MiB.
own_file futex 1
own_file vfork 2
own_file direct 2
own_file cgroups 8

# Uses memory, mappings, faults and advice of all sorts, over files of the data disk, as long as the readers run.
nicely busybox setsid hwdp -k $kind -- stress-ng --temp-path $work --mmap 1 --mmap-file --mmap-bytes 8m --fault 1 --madvise 1 \
	--vm 1 --vm-bytes 16m --vm-method incdec --timeout 0 --oom-avoid >$out/stress.txt 2>&1 &
stress=$!

echo "watch 0" >$mix/watch
./soak_mix watch $mix/watch $seed 2>>$out/failures &
watch=$!
part futex $work
part vfork
part direct $work
part cgroups
[ -z "$hung_sum" ] || { mount_hung; beside hung read_hung; }
[ ! -e $blocks ] || beside offline offline
[ ! -e /proc/sys/vm/compact_memory ] || beside compact compact

for each in sparing progress; do
	$each &
	readers="$readers $!"
done

round=0
note "the mix runs"
while [ "$(count)" -lt "$misses" ] || { [ -n "$(idle_parts)" ] && [ $((last -= 1)) -gt 0 ]; }; do
	round=$((round + 1))
	order="split"
	[ $(((round + seed) % 3)) = 0 ] && order=shuffle
	got=$(hwdp -k $kind -f /data/ -- mapsum -t 4 -o $order /data/random.bin) || fail "round $round: mapsum failed"
	[ "$got" = "$sum" ] || fail "round $round: mapsum read $got instead of $sum"
	hwdp -k $kind -f /data/ -s -- fio $verify --rw=randread --numjobs=2 --ioengine=mmap --invalidate=1 \
		>$out/fio-read.txt 2>&1 || { fail "round $round: fio does not verify"; cp $out/fio-read.txt $out/fio-bad.txt; }
	for process in $stress $watch $parts; do
		kill -0 $process 2>/dev/null || { fail "a part of the mix ended early: see stress.txt"; break 2; }
	done
	note "round $round: $(count) pages by $kind, not at work yet: $(idle_parts | tr '\n' ' ')"
done
touch $work/over
for each in $(idle_parts); do fail "nothing was done: $each"; done
kill -TERM $stress
signal_stress CONT
wait $stress
for process in $parts $watch; do
	kill -TERM $process 2>/dev/null
	wait $process || fail "a part of the mix ended with status $?"
done
for process in $readers; do wait $process; done
umount /tmp/hung 2>/dev/null
for each in $mix/*; do while read -r words; do note "$words"; done <$each; done

[ ! -e $stacks ] || owned $out/page_owner.before

# All areas ended with their programs. Setting the depth takes the rings' frames back; then no frame may be missing. A drive that
# did not answer may still write to a frame until it is reset.
echo 0 >$hwdp/enabled
[ -z "$reset" ] || echo 1 >$reset
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
[ ! -e $stacks ] || owned $out/page_owner
dmesg >$out/dmesg
exit 0
