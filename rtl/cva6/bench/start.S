# SPDX-License-Identifier: Apache-2.0
# Bare metal in M-mode: turns floating point on, sets stack and trap vector, calls main, gives its result to the test finisher.
    .section .text.init
    .globl _start
_start:
    csrr t0, mhartid       # only the first hart runs
5:  bnez t0, 5b
    la sp, stack_top
    la t0, trap
    csrw mtvec, t0
    li t0, 0x6000          # mstatus.FS
    csrs mstatus, t0
    li t0, -1
    csrw pmpaddr0, t0
    li t0, 0x1f            # S and U may use all memory
    csrw pmpcfg0, t0
    la t0, bss_start
    la t1, bss_end
1:  bgeu t0, t1, 2f
    sd zero, 0(t0)
    addi t0, t0, 8
    j 1b
2:  call main
    li t0, 0x100000        # test finisher: 0x5555 passes, code << 16 | 0x3333 fails
    li t1, 0x5555
    beqz a0, 3f
    slli a0, a0, 16
    li t1, 0x3333
    or t1, t1, a0
3:  sw t1, 0(t0)
4:  j 4b

    # Skips the instruction that trapped. An environment call from S-mode ends run_paged.
    .balign 4
    .globl trap
trap:
    csrw mscratch, t0
    csrr t0, mcause
    addi t0, t0, -9
    beqz t0, 1f
    csrr t0, mepc
    addi t0, t0, 4
    csrw mepc, t0
    csrr t0, mscratch
    mret
1:  la t0, back_to_m       # ecall of S-mode: done
    ld t0, 0(t0)
    jr t0

    # uint64_t run_paged(uint64_t (*f)(void), uint64_t satp): runs f in S-mode with paging and returns its result.
    .globl run_paged
run_paged:
    addi sp, sp, -16
    sd ra, 8(sp)
    la t0, back_to_m
    la t1, 2f
    sd t1, 0(t0)
    csrw satp, a1
    sfence.vma
    csrw mepc, a0
    li t0, 0x1800
    csrc mstatus, t0
    li t0, 0x0800          # MPP = S
    csrs mstatus, t0
    li t0, 7
    csrw mcounteren, t0
    la ra, 1f
    mret
1:  ecall
2:  li t0, 0x1800
    csrs mstatus, t0
    csrw satp, zero
    ld ra, 8(sp)
    addi sp, sp, 16
    ret

    .section .bss
    .balign 16
    .globl back_to_m
back_to_m: .dword 0
    .balign 16
    .space 16384
stack_top:
