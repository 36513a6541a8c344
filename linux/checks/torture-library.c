// SPDX-License-Identifier: GPL-2.0
/* The library that the torture program loads and unloads: code, constants and data of some pages. */
#include <stdint.h>

static const uint64_t constants[2048] = { [0] = 1, [7] = 20, [777] = 300, [2047] = 4000 };
static uint64_t data[1024] = { [1023] = 50000 };

uint64_t answer(uint64_t seed)
{
	return seed * constants[0] + constants[7 * seed / seed] + constants[2047] + data[1023]++;
}
