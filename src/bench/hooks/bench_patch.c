/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <sys/mman.h>

#include "bench/hooks/bench_hook.h"

#define PAGE_BYTES 4096u

/* A jump of 5 bytes, whose distance is replaced. */
__asm__(".text\n"
        ".balign 64\n"
        ".globl bench_hook\n"
        ".type bench_hook, @function\n"
        "bench_hook:\n\t"
        ".byte 0xe9\n\t"
        ".long 0\n"
        ".size bench_hook, . - bench_hook\n");

bool bench_patch(void *place, const void *code, uint64_t bytes)
{
    const uintptr_t from = (uintptr_t)place & ~(uintptr_t)(PAGE_BYTES - 1),
                    end = ((uintptr_t)place + bytes + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
    if (mprotect((void *)from, end - from, PROT_READ | PROT_WRITE | PROT_EXEC))
        return false;
    memcpy(place, code, bytes);
    return !mprotect((void *)from, end - from, PROT_READ | PROT_EXEC);
}

bool bench_patch_jump(void *place, uint8_t opcode, const void *to)
{
    const int64_t distance = (int64_t)((uintptr_t)to - (uintptr_t)place) - 5;
    const int32_t shorter = (int32_t)distance;
    uint8_t code[5] = {opcode};
    if (shorter != distance)
        return false;
    memcpy(code + 1, &shorter, sizeof(shorter));
    return bench_patch(place, code, sizeof(code));
}
