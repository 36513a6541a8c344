// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "draw.h"
#include "records.h"

size_t record_size(struct shape shape)
{
	return sizeof(struct header) + (size_t)shape.fields * shape.field_bytes;
}

size_t record_key(char key[KEY_SIZE], uint64_t number)
{
	return snprintf(key, KEY_SIZE, "user%" PRIu64, fnv_hash(number));
}

/*
 * Return a sum that detects every change of one word, and swapped words. A CRC would take most of a read's time on a core
 * without instructions for it. Values may be misaligned, and the RISC-V compiler loads misaligned data byte by byte, so they
 * are copied first.
 */
static uint32_t checksum(const struct header *header, const char *fields, size_t size)
{
	uint64_t sum = header->number * 0x9e3779b97f4a7c15 + header->version, words[64] = { 0 };

	while (size) {
		size_t part = size < sizeof(words) ? size : sizeof(words);

		words[(part - 1) / sizeof(words[0])] = 0;
		memcpy(words, fields, part);
		for (size_t n = 0; n < (part + sizeof(words[0]) - 1) / sizeof(words[0]); n++) {
			sum = (sum ^ words[n]) * 0xd6e8feb86659fd93;
			sum ^= sum >> 32;
		}
		fields += part;
		size -= part;
	}
	return sum ^ sum >> 32;
}

void record_write(struct shape shape, uint64_t number, uint32_t version, char *value)
{
	struct header header = { .number = number, .version = version };
	struct random random = { number << 20 ^ version };
	char *fields = value + sizeof(header);
	size_t size = record_size(shape) - sizeof(header);

	for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = random_next(&random);

		memcpy(fields + at, &word, size - at < sizeof(word) ? size - at : sizeof(word));
	}
	header.checksum = checksum(&header, fields, size);
	memcpy(value, &header, sizeof(header));
}

bool record_read(struct shape shape, const char *value, size_t size, struct header *header)
{
	if (size != record_size(shape))
		return false;
	memcpy(header, value, sizeof(*header));
	return header->checksum == checksum(header, value + sizeof(*header), size - sizeof(*header));
}
