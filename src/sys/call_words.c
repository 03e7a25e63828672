/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/call_words.h"

#include <string.h>

void call_words_add(struct buf *b, uint32_t flags, const struct call_word *words)
{
    const char *between = "";
    for (; words->word; words++) {
        if ((flags & words->bits) != words->bits)
            continue;
        buf_printf(b, "%s%s", between, words->word);
        between = "|";
        flags &= ~words->bits;
    }
    if (flags)
        buf_printf(b, "%s0x%x", between, flags);
    else if (!*between)
        buf_addstr(b, "0");
}

void call_words_prot(struct buf *b, uint32_t prot)
{
    static const struct call_word words[] = {{1, "PROT_READ"},
                                             {2, "PROT_WRITE"},
                                             {4, "PROT_EXEC"},
                                             {8, "PROT_SEM"},
                                             {0x1000000, "PROT_GROWSDOWN"},
                                             {0x2000000, "PROT_GROWSUP"},
                                             {0, NULL}};
    if (prot)
        call_words_add(b, prot, words);
    else
        buf_addstr(b, "PROT_NONE");
}

#define HUGE_SHIFT 26 /* from here on: the logarithm of the size of huge pages */

void call_words_mmap(struct buf *b, uint32_t flags)
{
    static const struct call_word words[] = {{0x3, "MAP_SHARED_VALIDATE"},
                                             {0x1, "MAP_SHARED"},
                                             {0x2, "MAP_PRIVATE"},
                                             {0x10, "MAP_FIXED"},
                                             {0x20, "MAP_ANONYMOUS"},
                                             {0x40, "MAP_32BIT"},
                                             {0x100, "MAP_GROWSDOWN"},
                                             {0x800, "MAP_DENYWRITE"},
                                             {0x1000, "MAP_EXECUTABLE"},
                                             {0x2000, "MAP_LOCKED"},
                                             {0x4000, "MAP_NORESERVE"},
                                             {0x8000, "MAP_POPULATE"},
                                             {0x10000, "MAP_NONBLOCK"},
                                             {0x20000, "MAP_STACK"},
                                             {0x40000, "MAP_HUGETLB"},
                                             {0x80000, "MAP_SYNC"},
                                             {0x100000, "MAP_FIXED_NOREPLACE"},
                                             {0, NULL}};
    const uint32_t shift = flags & 0x40000 ? flags >> HUGE_SHIFT : 0;
    call_words_add(b, shift ? flags & ((1u << HUGE_SHIFT) - 1) : flags, words);
    if (shift >= 30)
        buf_printf(b, "|MAP_HUGE_%lluGB", 1ull << (shift - 30));
    else if (shift >= 20)
        buf_printf(b, "|MAP_HUGE_%uMB", 1u << (shift - 20));
    else if (shift)
        buf_printf(b, "|MAP_HUGE_SHIFT=%u", shift);
}

void call_words_advice(struct buf *b, uint32_t advice)
{
    static const char *const words[] = {
        [0] = "NORMAL",           [1] = "RANDOM",          [2] = "SEQUENTIAL",
        [3] = "WILLNEED",         [4] = "DONTNEED",        [8] = "FREE",
        [9] = "REMOVE",           [10] = "DONTFORK",       [11] = "DOFORK",
        [12] = "MERGEABLE",       [13] = "UNMERGEABLE",    [14] = "HUGEPAGE",
        [15] = "NOHUGEPAGE",      [16] = "DONTDUMP",       [17] = "DODUMP",
        [18] = "WIPEONFORK",      [19] = "KEEPONFORK",     [20] = "COLD",
        [21] = "PAGEOUT",         [22] = "POPULATE_READ",  [23] = "POPULATE_WRITE",
        [24] = "DONTNEED_LOCKED", [25] = "COLLAPSE",       [100] = "HWPOISON",
        [101] = "SOFT_OFFLINE",   [102] = "GUARD_INSTALL", [103] = "GUARD_REMOVE"};
    if (advice < sizeof(words) / sizeof(*words) && words[advice])
        buf_printf(b, "MADV_%s", words[advice]);
    else
        buf_printf(b, "%u", advice);
}

const char *call_words_error(int64_t result)
{
    return result < 0 && result >= -4095 ? strerrorname_np((int)-result) : NULL;
}
