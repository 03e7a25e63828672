/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_READABLE_H
#define BASE_SIGSAFE_READABLE_H

/*
 * Tests whether memory that a program passes to a system call can be read: where it cannot, the system call fails with
 * EFAULT and we must not crash. Remembers the pages that could be read, so that an environment costs one system call
 * for each of its pages.
 *
 * Runs in: target, cold paths. Threads: any, vfork children and signal handlers included.
 * Invariant: a page that another thread unmaps meanwhile is not noticed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/syscall.h"

#define READABLE_PAGES      64u
#define READABLE_PAGE_BYTES 4096u

/* All zeros: nothing is known. An entry is the address of a page that can be read, with bit 0 set. */
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

/** The `bytes` at `at`, which are less than a page. */
static inline bool readable_bytes(struct readable *r, const void *at, size_t bytes)
{
    return readable_at(r, at) && readable_at(r, (const char *)at + bytes - 1);
}

/**
 * The text up to its NUL or to `bytes` bytes, whichever comes first. Stores the number of bytes before that in
 * `*length`.
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
