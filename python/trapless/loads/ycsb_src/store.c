// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

#define BLOOM_BITS 10
#define BATCH 64
#define WRONG_SHOWN 10

static void must(char *error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "ycsb: %s: %s\n", what, error);
	exit(1);
}

static void *room(uint64_t count, size_t size)
{
	void *got = calloc(count, size);

	if (!got) {
		fprintf(stderr, "ycsb: no memory for %" PRIu64 " records\n", count);
		exit(1);
	}
	return got;
}

/* Tables are mapped and not compressed, and there is no block cache, so that the kernel's paging is measured. */
static rocksdb_options_t *make_options(bool create)
{
	rocksdb_options_t *options = rocksdb_options_create();
	rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();

	rocksdb_options_set_create_if_missing(options, create);
	rocksdb_options_set_error_if_exists(options, create);
	rocksdb_options_set_compression(options, rocksdb_no_compression);
	rocksdb_options_set_allow_mmap_reads(options, 1);
	rocksdb_options_set_max_open_files(options, -1);
	rocksdb_block_based_options_set_no_block_cache(table, 1);
	rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
	rocksdb_options_set_block_based_table_factory(options, table);
	rocksdb_block_based_options_destroy(table);
	return options;
}

void store_open(struct store *store, const char *folder, bool create, struct shape shape, uint64_t present, uint64_t capacity)
{
	char *error = NULL;

	memset(store, 0, sizeof(*store));
	store->options = make_options(create);
	store->reading = rocksdb_readoptions_create();
	/* Each record has a checksum already; RocksDB's own would take nearly half of all instructions. */
	rocksdb_readoptions_set_verify_checksums(store->reading, 0);
	store->writing = rocksdb_writeoptions_create();
	store->shape = shape;
	store->capacity = capacity;
	store->taken = store->present = present;
	store->begun = room(capacity, sizeof(*store->begun));
	store->done = room(capacity, sizeof(*store->done));
	store->inserted = room(capacity, sizeof(*store->inserted));
	for (unsigned n = 0; n < STORE_LOCKS; n++)
		pthread_mutex_init(&store->locks[n], NULL);
	store->db = rocksdb_open(store->options, folder, &error);
	must(error, folder);
}

void store_close(struct store *store)
{
	rocksdb_close(store->db);
	rocksdb_readoptions_destroy(store->reading);
	rocksdb_writeoptions_destroy(store->writing);
	rocksdb_options_destroy(store->options);
	free(store->begun);
	free(store->done);
	free(store->inserted);
}

void store_load(struct store *store, uint64_t from, uint64_t to)
{
	size_t size = record_size(store->shape);
	rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
	rocksdb_writeoptions_t *writing = rocksdb_writeoptions_create();
	char *value = room(1, size), *error = NULL, key[KEY_SIZE];

	rocksdb_writeoptions_disable_WAL(writing, 1);
	for (uint64_t n = from; n < to; n++) {
		record_write(store->shape, n, 0, value);
		rocksdb_writebatch_put(batch, key, record_key(key, n), value, size);
		if ((n + 1) % BATCH && n + 1 < to)
			continue;
		rocksdb_write(store->db, writing, batch, &error);
		must(error, "load");
		rocksdb_writebatch_clear(batch);
	}
	free(value);
	rocksdb_writebatch_destroy(batch);
	rocksdb_writeoptions_destroy(writing);
}

void store_settle(struct store *store)
{
	rocksdb_flushoptions_t *flushing = rocksdb_flushoptions_create();
	char *error = NULL;

	rocksdb_flush(store->db, flushing, &error);
	must(error, "flush");
	rocksdb_flushoptions_destroy(flushing);
	rocksdb_compact_range(store->db, NULL, 0, NULL, 0);
}

static void complain(struct store *store, uint64_t number, const char *what)
{
	if (atomic_fetch_add(&store->wrong, 1) < WRONG_SHOWN)
		fprintf(stderr, "ycsb: WRONG: record %" PRIu64 " %s\n", number, what);
}

/* Check a record that was read after version `oldest` had been written. If it is wrong, report how. */
static bool is_right(struct store *store, uint64_t number, const char *value, size_t size, uint32_t oldest,
		     struct header *header)
{
	const char *what = NULL;

	if (!record_read(store->shape, value, size, header))
		what = "is damaged";
	else if (header->number != number)
		what = "is a different record";
	else if (header->version < oldest)
		what = "is an old version";
	else if (header->version > store->begun[number])
		what = "has a version that was never written";
	if (what)
		complain(store, number, what);
	return !what;
}

/* Read one record in the mapped table; return its version. */
static uint32_t read_version(struct store *store, uint64_t number)
{
	uint32_t oldest = store->done[number];
	struct header header = { .version = 0 };
	char *error = NULL, key[KEY_SIZE];
	size_t size = 0;
	rocksdb_pinnableslice_t *slice = rocksdb_get_pinned(store->db, store->reading, key, record_key(key, number), &error);

	if (error) {
		complain(store, number, error);
		free(error);
	} else if (!slice) {
		complain(store, number, "is missing");
	} else {
		const char *value = rocksdb_pinnableslice_value(slice, &size);

		is_right(store, number, value, size, oldest, &header);
	}
	if (slice)
		rocksdb_pinnableslice_destroy(slice);
	return header.version;
}

void store_read(struct store *store, uint64_t number)
{
	read_version(store, number);
}

static void put(struct store *store, uint64_t number, uint32_t version)
{
	size_t size = record_size(store->shape);
	char *value = room(1, size), *error = NULL, key[KEY_SIZE];

	store->begun[number] = version;
	record_write(store->shape, number, version, value);
	rocksdb_put(store->db, store->writing, key, record_key(key, number), value, size, &error);
	must(error, "put");
	store->done[number] = version;
	free(value);
}

void store_update(struct store *store, uint64_t number)
{
	pthread_mutex_t *lock = &store->locks[number % STORE_LOCKS];

	pthread_mutex_lock(lock);
	/* For a wrong record the version is meaningless, but the error was already reported. */
	read_version(store, number);
	put(store, number, store->done[number] + 1);
	pthread_mutex_unlock(lock);
}

void store_insert(struct store *store)
{
	uint64_t number = store->taken++, next;

	if (number >= store->capacity) {
		fprintf(stderr, "ycsb: no room for record %" PRIu64 "\n", number);
		exit(1);
	}
	put(store, number, 0);
	store->inserted[number] = true;
	/* The thread that closes a gap moves the end past all inserted records after it. */
	while ((next = store->present) < store->capacity && store->inserted[next])
		atomic_compare_exchange_strong(&store->present, &next, next + 1);
}

void store_scan(struct store *store, uint64_t number, unsigned count)
{
	rocksdb_iterator_t *at = rocksdb_create_iterator(store->db, store->reading);
	char key[KEY_SIZE], *error = NULL;
	struct header header;
	size_t size;

	for (rocksdb_iter_seek(at, key, record_key(key, number)); rocksdb_iter_valid(at) && count; count--) {
		const char *found = rocksdb_iter_key(at, &size);
		size_t length = size;
		const char *value = rocksdb_iter_value(at, &size);

		/* The first record must be the requested one; each further one must be the record of its key. */
		if (!record_read(store->shape, value, size, &header) || header.number >= store->capacity)
			complain(store, number, "(or a later one) is damaged");
		else if (record_key(key, header.number) != length || memcmp(key, found, length))
			complain(store, header.number, "has the key of another record");
		else if (is_right(store, header.number, value, size, 0, &header) && number < store->capacity &&
			 header.number != number)
			complain(store, number, "is missing");
		number = UINT64_MAX;
		rocksdb_iter_next(at);
	}
	rocksdb_iter_get_error(at, &error);
	must(error, "scan");
	rocksdb_iter_destroy(at);
}
