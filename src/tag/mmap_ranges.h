/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_MMAP_RANGES_H
#define TAG_MMAP_RANGES_H

/*
 * The ranges of address space that tagged calls have mapped, with their accounts. Any part of a mapping may be
 * unmapped.
 *
 * Runs in: target, cold paths: each call accompanies mmap(), munmap() or mremap(). Threads: any. A thread holds the
 * lock for some hundred instructions. A signal handler that interrupts this thread does not get the lock; other threads
 * wait for a limited time.
 * Owns: private anonymous memory, which the kernel wipes in fork children: a child counts no mapping of its parent.
 * Invariant: ranges do not overlap.
 */

#include <stdbool.h>
#include <stdint.h>

/* A list of parts of ranges that mmap_ranges_take() has removed from the table. */
struct mmap_ranges_taken {
    uint32_t first;   /* 0: none */
    uint32_t account; /* of the first part */
};

/** Counts bytes of the account as unmapped. `last`: all other parts of the mapping have been unmapped before. */
typedef void (*ranges_count_fn)(uint32_t account, uint64_t bytes, bool last);

enum mmap_ranges_answer {
    MMAP_RANGES_NONE,
    MMAP_RANGES_DONE,
    MMAP_RANGES_BUSY, /* no lock or no memory: the request was not carried out, or only in part */
};

/**
 * Empties the table when a fork child begins. If fork() ran in a signal handler, the code that the handler interrupted
 * may have entered ranges of the parent after the kernel had wiped the table.
 */
void mmap_ranges_reset(void);
/** Returns the table, for readers in other processes; NULL: there is none yet. */
const void *mmap_ranges_table(void);
/** Returns whether the table has any range. */
bool mmap_ranges_any(void);
/** Enters a mapping, which must not overlap a range of the table. Returns MMAP_RANGES_DONE or MMAP_RANGES_BUSY. */
enum mmap_ranges_answer mmap_ranges_enter(uintptr_t start, uintptr_t end, uint32_t account);
/**
 * Removes all parts of ranges in [start, end) from the table. MMAP_RANGES_NONE: there are none. MMAP_RANGES_BUSY: some
 * may still be in the table.
 */
enum mmap_ranges_answer mmap_ranges_take(uintptr_t start, uintptr_t end, struct mmap_ranges_taken *taken);
/**
 * One of these two follows mmap_ranges_take(). If the program unmapped the parts, mmap_ranges_unmapped() calls `count`
 * for each. If it did not, mmap_ranges_put_back() enters them again. False: the lock was not available in time, and the
 * parts are not followed any more.
 */
bool mmap_ranges_unmapped(const struct mmap_ranges_taken *taken, ranges_count_fn count);
bool mmap_ranges_put_back(const struct mmap_ranges_taken *taken);

#endif
