#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# RocksDB with about 300 tables that are all mapped at once: RocksDB merges none of them.
db_bench --db=/data/db --benchmarks=fillseq --num=10000 --value_size=2000 --compression_type=none --write_buffer_size=65536 \
	--disable_auto_compactions=true --level0_slowdown_writes_trigger=100000 --level0_stop_writes_trigger=100000 \
	--disable_wal=true --seed=1 --threads=1 --histogram=false --statistics=false > /tmp/out 2>&1 || { cat /tmp/out; exit 1; }
set -- /data/db/*.sst
[ $# -ge 300 ] && echo "300 tables or more"
sync
echo 3 > /proc/sys/vm/drop_caches
db_bench --db=/data/db --use_existing_db=true --benchmarks=readrandom,readseq --num=10000 --reads=300 --value_size=2000 \
	--mmap_read=1 --open_files=-1 --cache_size=0 --compression_type=none --disable_auto_compactions=true --seed=1 --threads=2 \
	--verify_checksum=true > /tmp/out 2>&1
status=$?
sed -n 's/^\(read[a-z]*\) .*\((.*found.*)\).*/\1 \2/p; /orruption\|rror/p' /tmp/out
exit $status
