/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Markers: points of a run that a program shows to the Trapless machine.
 * They are HINT instructions, so they do nothing on any other RISC-V, and elsewhere there are none. See spec/platform.md.
 */
#ifndef TRAPLESS_MARKER_H
#define TRAPLESS_MARKER_H

#define MARKER_ROI_BEGIN 0x7a1
#define MARKER_ROI_END 0x7a2
#define MARKER_WATCH 0x7a3
#define MARKER_UNWATCH 0x7a4
#define MARKER_MILESTONE 0x7a5

#ifdef __riscv
#define marker(number, x, y, z)                                                                        \
	do {                                                                                           \
		register unsigned long a0_ __asm__("a0") = (unsigned long)(x);                         \
		register unsigned long a1_ __asm__("a1") = (unsigned long)(y);                         \
		register unsigned long a2_ __asm__("a2") = (unsigned long)(z);                         \
		__asm__ volatile("slti x0, x0, %3" : : "r"(a0_), "r"(a1_), "r"(a2_), "i"(number)       \
				 : "memory");                                                          \
	} while (0)
#else
#define marker(number, x, y, z) ((void)(x), (void)(y), (void)(z))
#endif

#endif
