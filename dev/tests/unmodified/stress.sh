#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stress-ng's stressors of mappings and processes, with their files in /data and their own checks.
cd /data || exit 1
worst=0
for stressor in "--mmap 1 --mmap-ops 8 --mmap-file --mmap-bytes 1m" "--fork 1 --fork-ops 20" "--vfork 1 --vfork-ops 20" \
		"--vm 1 --vm-ops 200 --vm-bytes 2m" "--mremap 1 --mremap-ops 20 --mremap-bytes 1m" "--mmapfork 1 --mmapfork-ops 1"; do
	# shellcheck disable=SC2086 # words
	stress-ng $stressor --temp-path /data --verify --seed 1 > /tmp/out 2>&1
	status=$?
	echo "${stressor%% *} status $status"
	[ $status = 0 ] || { cat /tmp/out; worst=$status; }
done
exit $worst
