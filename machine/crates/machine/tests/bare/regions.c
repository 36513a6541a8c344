/* SPDX-License-Identifier: Apache-2.0 */
/* Markers alone: which regions of interest there are when several address spaces and programs ask for them. */
#include "bare.h"

#define ROI_BEGIN 0x7a1
#define ROI_END 0x7a2
#define UNWATCH 0x7a4
#define MOVE 0x7a6
#define FORK 0x7a7
#define WATCH_REGION 0x7a8
#define EVERYTHING (~0UL)
/* Only the number of the root table counts here: nothing is translated. */
#define PARENT 0
#define CHILD 0x12345

void main(u64 hart)
{
	if (hart)
		for (;;)
			asm volatile("wfi");
	MARKER(WATCH_REGION, 0x1000, 2 * PAGE, 0);	/* region 0 */
	MARKER(ROI_BEGIN, 7, 0, 0);			/* ends it: a program's own comes first */
	MARKER(ROI_BEGIN, 7, 0, 0);			/* another program's, the same */
	MARKER(ROI_END, 7, 0, 0);
	MARKER(ROI_END, 9, 0, 0);			/* not open */
	MARKER(ROI_END, 7, 0, 0);			/* nothing begins: watching goes on, it does not begin */
	MARKER(UNWATCH, 0x1000, 2 * PAGE, 0);
	MARKER(WATCH_REGION, 0x1000, 2 * PAGE, 0);	/* region 1 */
	MARKER(FORK, 5, 0, 0);
	csr_write(satp, CHILD);
	MARKER(FORK, 5, 1, 0);
	csr_write(satp, PARENT);
	MARKER(UNWATCH, 0, EVERYTHING, 0);		/* the child has the same */
	csr_write(satp, CHILD);
	MARKER(UNWATCH, 0x1000, PAGE, 0);		/* one page is left */
	MARKER4(MOVE, 0x2000, PAGE, 0x9000, 3 * PAGE);
	MARKER(UNWATCH, 0x2000, PAGE, 0);		/* no longer there */
	MARKER(UNWATCH, 0x9000, 3 * PAGE, 1);		/* unmapping keeps it open */
	MARKER(WATCH_REGION, 0x9000, PAGE, 0);		/* another thread's new mapping at this place */
	MARKER(UNWATCH, 0, 0, 2);
	MARKER(UNWATCH, 0, 0, 2);			/* one too many */
	MARKER(UNWATCH, 0x9000, PAGE, 0);		/* ends it */
	MARKER(WATCH_REGION, 0x1000, PAGE, 0);		/* region 2 */
	MARKER(ROI_END, EVERYTHING, 0, 0);		/* ends it, whatever is watched */
	MARKER(WATCH_REGION, 0x1000, EVERYTHING, 0);	/* absurd */
	MARKER(ROI_BEGIN, EVERYTHING, 0, 0);		/* no number */
	MARKER(ROI_BEGIN, 8, 0, 0);
	MARKER(ROI_END, EVERYTHING, 0, 0);
	for (int i = 0; i < 1200; i++) {		/* regions 3 to 1202 */
		MARKER(WATCH_REGION, 0x1000, PAGE, 0);
		MARKER(UNWATCH, 0x1000, PAGE, 0);
	}
	MARKER(WATCH_REGION, 0x1000, PAGE, 0);		/* the end of the run ends it */
}
