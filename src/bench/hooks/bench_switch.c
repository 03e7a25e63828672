/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/hooks/bench_switch.h"

#include <string.h>
#include <sys/mman.h>

#include "base/sigsafe/usdt.h"
#include "bench/hooks/bench_mechanism.h"

#define PAGE_BYTES 4096u
#define JUMP_BYTES 5u

/* BENCH_SITES_MOST functions, which begin with `code`. */
#define SITES(name, code)                                                                                    \
    __asm__(".text\n"                                                                                        \
            ".balign 4096\n"                                                                                 \
            ".globl " #name "\n.hidden " #name "\n"                                                          \
            ".type " #name ", @object\n" #name ":\n"                                                         \
            ".rept 1000\n\t"                                                                                 \
            ".balign 16\n\t" code "\n\t"                                                                     \
            "ret\n"                                                                                          \
            ".endr\n"                                                                                        \
            ".size " #name ", . - " #name "\n"                                                               \
            ".balign 4096\n");                                                                               \
    extern const char name[] __attribute__((visibility("hidden")))

SITES(bench_switch_wide_nops, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00");
SITES(bench_switch_nops, "nop");
SITES(bench_switch_probes, USDT_SITE("allium_bench", "many", "8@%rdi"));

static struct {
    uint32_t is_on;
} __attribute__((aligned(64)))
flags[BENCH_SITES_MOST]; /* as if each belonged to another part of the program */

bool bench_switch_flags(uint32_t n, bool on)
{
    for (uint32_t i = 0; i < n; i++)
        store_relaxed(&flags[i].is_on, on);
    return true;
}

/* Changes the protection of all sites at once, as a tool that switches many sites does. */
static bool change(const char *sites, uint32_t n, const void *code, size_t bytes)
{
    const size_t len = (n * (size_t)BENCH_SITE_BYTES + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
    char *to = (char *)(uintptr_t)sites;
    if (mprotect(to, len, PROT_READ | PROT_WRITE | PROT_EXEC))
        return false;
    for (uint32_t i = 0; i < n; i++)
        memcpy(to + i * (size_t)BENCH_SITE_BYTES, code, bytes);
    return !mprotect(to, len, PROT_READ | PROT_EXEC);
}

/* The jump is one to the next instruction: it is not executed. */
bool bench_switch_jumps(uint32_t n, bool on)
{
    static const uint8_t jump[JUMP_BYTES] = {0xe9}, nop[JUMP_BYTES] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
    return change(bench_switch_wide_nops, n, on ? jump : nop, JUMP_BYTES);
}

bool bench_switch_traps(uint32_t n, bool on)
{
    static const uint8_t int3 = 0xcc, nop = 0x90;
    return change(bench_switch_nops, n, on ? &int3 : &nop, 1);
}
