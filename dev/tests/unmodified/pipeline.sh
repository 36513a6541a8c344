#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A shell's pipelines, with programs that map and programs that do not.
mapsum -t 2 /data/random.bin | tee /tmp/sum | wc -c
cat /tmp/sum
head -c 8000 /data/random.bin | od -A n -t u1 -v | tr -s ' ' '\n' | sort -n | uniq -c | sort -rn | head -n 3
(mapsum -r /data/random.bin & mapsum -t 1 /data/random.bin & wait) | sort | uniq -c
no-such-command 2> /dev/null | cat
echo "statuses $? $(mapsum /data/no-such-file > /dev/null 2>&1; echo $?)"
