/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_MMAP_RANGES_H
#define TAG_MMAP_RANGES_H

/*
 * Which ranges of address space are mapped by tagged calls, and by whom. A mapping may lose parts of itself, in the
 * midst of it too.
 *
 * Runs in: target, cold paths; each call of it comes with a system call of the program's own. Threads: any. There is a
 * lock, for some hundred instructions; a signal handler that has interrupted its own thread in there is turned away,
 * and who waits does so for a limited time: nobody ever waits for ever.
 * Owns: private anonymous memory, which the kernel wipes in fork children: what they unmap of their parent's is not
 * theirs.
 * Invariant: ranges do not overlap.
 */

#include <stdbool.h>
#include <stdint.h>

/* Parts of ranges that were taken out, in a list of this file's own. What is left of their mappings knows of them. */
struct mmap_ranges_taken {
    uint32_t first;   /* 0: none */
    uint32_t account; /* of that one */
};

/** So many bytes of the account are gone; `last`: nothing else of that mapping is left. */
typedef void (*ranges_book_fn)(uint32_t account, uint64_t bytes, bool last);

enum mmap_ranges_answer {
    MMAP_RANGES_NONE,
    MMAP_RANGES_DONE,
    MMAP_RANGES_BUSY, /* or no memory: it is not known, or not kept */
};

/**
 * In a fork child, when it begins: what is in by now was entered by what a handler interrupted that forked, for the
 * parent.
 */
void mmap_ranges_reset(void);
/** Where it lies, for readers from outside; NULL: nowhere yet. */
const void *mmap_ranges_table(void);
/** Something may be in there: false says that nothing is. */
bool mmap_ranges_any(void);
/** A mapping of that account, where no range is. MMAP_RANGES_DONE or MMAP_RANGES_BUSY. */
enum mmap_ranges_answer mmap_ranges_enter(uintptr_t start, uintptr_t end, uint32_t account);
/** Takes out what lies there. MMAP_RANGES_NONE: nothing does; MMAP_RANGES_BUSY: something may be left. */
enum mmap_ranges_answer mmap_ranges_take(uintptr_t start, uintptr_t end, struct mmap_ranges_taken *taken);
/** They are gone, or are still there as they were. False: there was no getting in, and nobody follows them any more. */
bool mmap_ranges_gone(const struct mmap_ranges_taken *taken, ranges_book_fn book);
bool mmap_ranges_put_back(const struct mmap_ranges_taken *taken);

#endif
