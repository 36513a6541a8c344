/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are, for C and the assembler. */
#ifndef PLACES_H
#define PLACES_H
/* RAM for U mode, which may execute it. */
#define USER_RAM 0x100000000
/* scause of the call that ends an access in U mode. */
#define USER_CALL 8
#endif
