/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_RANGES_H
#define TAG_RANGES_H

/*
 * Which ranges of address space are mapped by tagged calls, and by whom. A mapping may lose parts of itself, in the midst of it too.
 *
 * Runs in: target, cold paths; each call of it comes with a system call of the program's own. Threads: any. There is a lock, for some
 * hundred instructions; a signal handler that has interrupted its own thread in there is turned away, and who waits does so for
 * a limited time: nobody ever waits for ever.
 * Owns: private anonymous memory, which the kernel wipes in fork children: what they unmap of their parent's is not theirs.
 * Invariant: ranges do not overlap.
 */

#include <stdbool.h>
#include <stdint.h>

struct range {
    uintptr_t start, end;
    uint32_t account;
    uint32_t mapping; /* a number of this file's own */
    bool last;        /* of its mapping, nothing else of which is left */
};

enum ranges_answer {
    RANGES_NONE,
    RANGES_DONE,
    RANGES_BUSY, /* or no memory: it is not known, or not kept */
};

/** Where it lies, for readers from outside; NULL: nowhere yet. */
const void *ranges_table(void);
/** Something may be in there: false says that nothing is. */
bool ranges_any(void);
/** A mapping of that account, where no range is. RANGES_DONE or RANGES_BUSY. */
enum ranges_answer ranges_enter(uintptr_t start, uintptr_t end, uint32_t account);
/** Takes out the first part of a range that lies there. RANGES_NONE: none does. */
enum ranges_answer ranges_take(uintptr_t start, uintptr_t end, struct range *part);
/** It is still there, as it was. RANGES_DONE or RANGES_BUSY. */
enum ranges_answer ranges_put_back(const struct range *part);

#endif
