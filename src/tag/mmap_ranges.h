/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_MMAP_RANGES_H
#define TAG_MMAP_RANGES_H

/*
 * The ranges of address space that tagged calls have mapped, with their accounts. Parts of a mapping may be unmapped,
 * also in its middle.
 *
 * Runs in: target, cold paths; each call comes with a system call of the program. Threads: any. A lock is held for
 * some hundred instructions. A signal handler that interrupts its own thread there is refused; other threads wait for
 * a limited time.
 * Owns: private anonymous memory, which the kernel wipes in fork children: a child counts no mapping of its parent.
 * Invariant: ranges do not overlap.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Parts of ranges that were taken out, as a list of this file's own. The remaining parts of their mappings stay in.
 */
struct mmap_ranges_taken {
    uint32_t first;   /* 0: none */
    uint32_t account; /* of the first part */
};

/** Counts bytes of the account as unmapped. `last`: no other part of the mapping is left. */
typedef void (*ranges_book_fn)(uint32_t account, uint64_t bytes, bool last);

enum mmap_ranges_answer {
    MMAP_RANGES_NONE,
    MMAP_RANGES_DONE,
    MMAP_RANGES_BUSY, /* the lock or memory could not be had: the answer is unknown, or the range was not entered */
};

/**
 * Empties the table in a fork child, when it begins: code that a forking signal handler interrupted may have entered
 * ranges for the parent.
 */
void mmap_ranges_reset(void);
/** Returns the table, for readers outside; NULL: there is none yet. */
const void *mmap_ranges_table(void);
/** False: the table is empty. */
bool mmap_ranges_any(void);
/** Enters a mapping. No range may be there. Returns MMAP_RANGES_DONE or MMAP_RANGES_BUSY. */
enum mmap_ranges_answer mmap_ranges_enter(uintptr_t start, uintptr_t end, uint32_t account);
/**
 * Takes the parts of ranges in [start, end) out. MMAP_RANGES_NONE: there are none. MMAP_RANGES_BUSY: some may be
 * left.
 */
enum mmap_ranges_answer mmap_ranges_take(uintptr_t start, uintptr_t end, struct mmap_ranges_taken *taken);
/**
 * The parts that were taken out have been unmapped: calls `book` for each. mmap_ranges_put_back(): they have not, and
 * go back. False: the lock could not be had, and nobody follows these parts any more.
 */
bool mmap_ranges_gone(const struct mmap_ranges_taken *taken, ranges_book_fn book);
bool mmap_ranges_put_back(const struct mmap_ranges_taken *taken);

#endif
