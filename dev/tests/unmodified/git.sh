#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# git in /data: commits, a pack that is mapped, a clone of it, checks.
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=/tmp
export GIT_AUTHOR_DATE="2024-01-01T00:00:00Z" GIT_COMMITTER_DATE="2024-01-01T00:00:00Z"
git config --global init.defaultBranch main
git config --global gc.auto 0
export GIT_PAGER=cat
set -e
mkdir /data/repository
cd /data/repository
git init -q .
for commit in 1 2 3 4; do
	for file in 1 2 3 4 5; do
		dd if=/data/random.bin of=file$file bs=10000 count=3 skip=$((commit * file)) 2> /dev/null
	done
	git add .
	git commit -q -m "commit $commit"
done
git gc -q
sync
echo 3 > /proc/sys/vm/drop_caches
git log --format=%H
git clone -q --no-hardlinks /data/repository /data/clone
git -C /data/clone fsck --full --no-progress
git -C /data/clone log --stat --format=%s | md5sum
cd /data/clone
md5sum file*
