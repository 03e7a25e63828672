/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_HFAULTS_HELD_H
#define SYS_HFAULTS_HELD_H

/*
 * Figures of the kernel about huge pages that no event has: what a process holds, and the splits of the whole machine.
 *
 * Runs in: the tool. Threads: one.
 */

#include <stdbool.h>
#include <stdint.h>

/** Counts since boot. */
struct huge_splits {
    uint64_t pages, mappings;
};

/** Returns false if the kernel does not count them. */
bool huge_splits_read(struct huge_splits *out);

/** Reads the bytes in pages of hugetlbfs that a process maps. Returns false if it has ended. */
bool huge_hugetlb_read(uint32_t pid, uint64_t *bytes);

/** Returns the order of a transparent huge page; 0: the kernel has none. */
uint32_t huge_order_read(void);

/** Returns the kernel's enum scan_result in plain words, by its name in lower case without "scan_". */
const char *huge_result_words(const char *name);

#endif
