/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Markers: points of a run that a program shows to the Trapless machine (spec/platform.md). They
 * are HINT instructions, which do nothing on other RISC-V processors. On other architectures a
 * marker is no code at all.
 */
#ifndef TRAPLESS_MARKER_H
#define TRAPLESS_MARKER_H

#define MARKER_ROI_BEGIN 0x7a1
#define MARKER_ROI_END 0x7a2
#define MARKER_WATCH 0x7a3
#define MARKER_UNWATCH 0x7a4
#define MARKER_MILESTONE 0x7a5
#define MARKER_MOVE 0x7a6
#define MARKER_FORK 0x7a7
#define MARKER_WATCH_REGION 0x7a8

#define ROI_ANY ~0UL

#define UNWATCH_NOW 0
#define UNWATCH_BEGINS 1
#define UNWATCH_ENDS 2

#define FORK_PARENT 0
#define FORK_CHILD 1

/* marker(number, a0, a1, a2, a3): arguments that are left out are 0. */
#define marker(number, ...) marker_(number, __VA_ARGS__, 0, 0, 0, 0)

#ifdef __riscv
#define marker_(number, x, y, z, w, ...)                                                               \
	do {                                                                                           \
		register unsigned long a0_ __asm__("a0") = (unsigned long)(x);                         \
		register unsigned long a1_ __asm__("a1") = (unsigned long)(y);                         \
		register unsigned long a2_ __asm__("a2") = (unsigned long)(z);                         \
		register unsigned long a3_ __asm__("a3") = (unsigned long)(w);                         \
		__asm__ volatile("slti x0, x0, %4"                                                     \
				 :                                                                     \
				 : "r"(a0_), "r"(a1_), "r"(a2_), "r"(a3_), "i"(number)                 \
				 : "memory");                                                          \
	} while (0)
#else
#define marker_(number, x, y, z, w, ...) ((void)(x), (void)(y), (void)(z), (void)(w))
#endif

#endif
