/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_READABLE_H
#define BASE_SIGSAFE_READABLE_H

/*
 * Tests whether the agent can read memory that a program passes to a system call. (If the memory is not readable, the
 * system call fails with EFAULT, and the agent must not crash.) Remembers the pages that can be read, so that the test
 * of an environment makes one system call for each of its pages.
 *
 * Runs in: target, cold paths. Threads: any, vfork children and signal handlers included.
 * Limit: if another thread unmaps a page after its test, the agent crashes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/syscall.h"

#define READABLE_PAGES      64u
#define READABLE_PAGE_BYTES 4096u

/* The pages that can be read. An entry is the address of such a page, with bit 0 set; 0: unused. */
struct readable {
    uintptr_t pages[READABLE_PAGES];
};

static inline bool readable_at(struct readable *r, const void *at)
{
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)(READABLE_PAGE_BYTES - 1);
    uintptr_t *known = &r->pages[page / READABLE_PAGE_BYTES % READABLE_PAGES];
    if (*known == (page | 1))
        return true;
    if (!sys_can_read((const void *)page))
        return false;
    *known = page | 1;
    return true;
}

/** Returns whether the `bytes` at `at`, which are less than a page, can be read. */
static inline bool readable_bytes(struct readable *r, const void *at, size_t bytes)
{
    return readable_at(r, at) && readable_at(r, (const char *)at + bytes - 1);
}

/**
 * Returns whether the text can be read up to its NUL, or to `bytes` bytes, whichever comes first. `*length`: the number
 * of bytes before this end.
 */
static inline bool readable_text(struct readable *r, const char *text, size_t bytes, size_t *length)
{
    size_t n = 0;
    for (bool new_page = true; n < bytes; n++) {
        if (new_page && !readable_at(r, text + n))
            return false;
        if (!text[n])
            break;
        new_page = (uintptr_t)(text + n + 1) % READABLE_PAGE_BYTES == 0;
    }
    *length = n;
    return true;
}

#endif
