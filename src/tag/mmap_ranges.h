/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_MMAP_RANGES_H
#define TAG_MMAP_RANGES_H

/*
 * The table of the ranges of address space that tagged calls have mapped, with their accounts. At first, a mapping is
 * one range. The program may unmap any part of a mapping; then several ranges may remain.
 *
 * Runs in: target, cold paths: each call accompanies mmap(), munmap() or mremap(). Threads: any. A thread holds the
 * lock for some hundred instructions. If a signal handler interrupts the thread that holds the lock, the handler does
 * not get the lock; other threads wait for the lock for a limited time.
 * Owns: private anonymous memory, which the kernel wipes in fork children: a child counts no mapping of its parent.
 * Invariant: ranges do not overlap.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * A list of parts of ranges that mmap_ranges_take() has removed from the table. They are removed before the system
 * call, because another thread may get the addresses as soon as the kernel has unmapped them.
 */
struct mmap_ranges_taken {
    uint32_t first;      /* node of the first part; 0: the list is empty */
    uint32_t account;    /* of the first part; 0: the list is empty */
    uint32_t generation; /* process.generation: in a fork child, a list of its parent is empty */
};

/** Counts `bytes` of the account as unmapped. `last`: no other part of the mapping is left. */
typedef void (*ranges_count_fn)(uint32_t account, uint64_t bytes, bool last);

enum mmap_ranges_answer {
    MMAP_RANGES_NONE, /* there is nothing to do */
    MMAP_RANGES_DONE,
    MMAP_RANGES_BUSY, /* no lock or no memory: nothing was done, or only a part */
};

/**
 * Gives a fork child an empty table when it begins, called by its only thread. The kernel has wiped the table at the
 * fork; but if fork() ran in a signal handler, the code that the handler interrupted may have entered ranges of the
 * parent since then, or may still do so.
 */
void mmap_ranges_reset(void);
/** Returns the address of the table (struct ranges), for readers in other processes; NULL: there is none yet. */
const void *mmap_ranges_table(void);
/** Returns whether the table has any range. */
bool mmap_ranges_any(void);
/** Enters the mapping [start, end), which must not overlap any range of the table. Returns DONE or BUSY. */
enum mmap_ranges_answer mmap_ranges_enter(uintptr_t start, uintptr_t end, uint32_t account);
/**
 * Removes the parts of all ranges that lie in [start, end) from the table, and stores a list of them in *taken.
 * MMAP_RANGES_NONE: there are none. MMAP_RANGES_BUSY: some may still be in the table; *taken has the removed ones.
 */
enum mmap_ranges_answer mmap_ranges_take(uintptr_t start, uintptr_t end, struct mmap_ranges_taken *taken);
/**
 * One of the next two functions must follow mmap_ranges_take(). mmap_ranges_unmapped(), if the parts were unmapped:
 * calls `count` for each part. mmap_ranges_put_back(), if they were not: enters the parts again. False: the lock was
 * not available in time, and the parts are not followed any more.
 */
bool mmap_ranges_unmapped(const struct mmap_ranges_taken *taken, ranges_count_fn count);
bool mmap_ranges_put_back(const struct mmap_ranges_taken *taken);

#endif
