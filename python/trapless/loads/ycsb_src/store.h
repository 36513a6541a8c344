// SPDX-License-Identifier: Apache-2.0
/* The records in RocksDB, with their state: which of them exist, and how often each was written. */
#ifndef YCSB_STORE_H
#define YCSB_STORE_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "records.h"

#define STORE_LOCKS 1024

struct store {
	rocksdb_t *db;
	rocksdb_options_t *options;
	rocksdb_readoptions_t *reading;
	rocksdb_writeoptions_t *writing;
	struct shape shape;
	uint64_t capacity;		/* most records that the arrays below hold */
	_Atomic uint64_t taken;		/* numbers given to inserts so far, including loaded records */
	_Atomic uint64_t present;	/* all records below this number exist: YCSB's AcknowledgedCounterGenerator */
	_Atomic uint32_t *begun, *done;	/* for each record the version that a writer has begun, and has finished */
	_Atomic bool *inserted;
	pthread_mutex_t locks[STORE_LOCKS];	/* of writers, by record */
	_Atomic uint64_t wrong;		/* number of reads that returned a wrong record */
};

/* Open the database in `folder`, which has `present` records, for up to `capacity` records. Exits on an error. */
void store_open(struct store *store, const char *folder, bool create, struct shape shape, uint64_t present, uint64_t capacity);
void store_close(struct store *store);
/* Write the new records [from, to), without a log. */
void store_load(struct store *store, uint64_t from, uint64_t to);
/* Flush all records to tables, and compact the tables. */
void store_settle(struct store *store);

void store_read(struct store *store, uint64_t number);
/* Read a record, and write it with the next version. */
void store_update(struct store *store, uint64_t number);
void store_insert(struct store *store);
/* Read up to `count` records in the order of their keys. */
void store_scan(struct store *store, uint64_t number, unsigned count);

#endif
