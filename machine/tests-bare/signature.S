/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves two words between begin_signature and end_signature. */
#include "test.h"
	BEGIN
	la a0, begin_signature
	li a1, 0x600dcafe12345678
	sd a1, (a0)
	END
	.data
	.balign 16
	.globl begin_signature
begin_signature:
	.dword 0
	.globl end_signature
end_signature:
