// SPDX-License-Identifier: Apache-2.0
/*
 * Records whose content can be checked. A header has the record's number, its version and a checksum; all other bytes are
 * computed from number and version. So a reader recognizes a wrong, an old and a damaged record.
 */
#ifndef YCSB_RECORDS_H
#define YCSB_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_SIZE 24	/* "user", at most 19 digits, NUL */

struct shape {
	unsigned fields, field_bytes;
};

struct header {
	uint64_t number;	/* of the record: 0, 1, ... in the order of insertion */
	uint32_t version;	/* 0 when it was loaded or inserted, 1 after the first update */
	uint32_t checksum;	/* of the two above and of all fields */
};

size_t record_size(struct shape shape);
/* Write YCSB's key of record `number` (insertorder=hashed); return its length. */
size_t record_key(char key[KEY_SIZE], uint64_t number);
void record_write(struct shape shape, uint64_t number, uint32_t version, char *value);
/* Return whether the record is complete and undamaged; if so, set `header`. */
bool record_read(struct shape shape, const char *value, size_t size, struct header *header);

#endif
