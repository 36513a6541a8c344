// SPDX-License-Identifier: Apache-2.0
/* The records in RocksDB, and what is known of them: which are there, and how often each was written. */
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
	uint64_t capacity;		/* records for which there is room below */
	_Atomic uint64_t taken;		/* numbers given to inserts so far, the loaded ones included */
	_Atomic uint64_t present;	/* all records below this number are there: YCSB's AcknowledgedCounterGenerator */
	_Atomic uint32_t *begun, *done;	/* version of each record that a writer began, and ended, to write */
	_Atomic bool *inserted;
	pthread_mutex_t locks[STORE_LOCKS];	/* of writers, by record */
	_Atomic uint64_t wrong;		/* records that were not what they must be */
};

/* Open the database in `folder`, where `present` records are, for up to `capacity`. Ends the program if it cannot. */
void store_open(struct store *store, const char *folder, bool create, struct shape shape, uint64_t present, uint64_t capacity);
void store_close(struct store *store);
/* Write records [from, to), which are not there, without a log. */
void store_load(struct store *store, uint64_t from, uint64_t to);
/* All in tables, and these sorted into each other. */
void store_settle(struct store *store);

void store_read(struct store *store, uint64_t number);
/* Read a record, and write it with its next version. */
void store_update(struct store *store, uint64_t number);
void store_insert(struct store *store);
/* Read up to `count` records in the order of their keys. */
void store_scan(struct store *store, uint64_t number, unsigned count);

#endif
