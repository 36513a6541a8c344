# SPDX-License-Identifier: Apache-2.0
# What the machine takes for a Linux Image: asks the SBI something a few times and has the machine shut down.
	.option norvc
	.globl _start
_start:
	j	1f
	.word	0
	.dword	0x200000		# text_offset
	.dword	end - _start		# image_size
	.dword	0			# flags
	.word	2			# version
	.word	0
	.dword	0
	.dword	0
	.word	0x05435352		# "RSC\x05"
	.word	0
1:	li	s0, 10
2:	li	a7, 0x10		# base extension: specification version
	li	a6, 0
	ecall
	addi	s0, s0, -1
	bnez	s0, 2b
	li	a7, 8			# legacy shutdown
	ecall
3:	j	3b
end:
