/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_PAGE_BYTES_H
#define MODEL_PAGE_BYTES_H

/*
 * The size of a machine's page, of which no file of the kernel speaks.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

/** Returns whether a machine that runs Linux may have pages of this size. */
bool page_bytes_possible(uint64_t bytes);
/**
 * Compares what /proc/meminfo tells in KiB with the same counts in pages of /proc/vmstat, read at about the same time.
 * Returns 0 if one of the texts is NULL or lacks them, or if they contradict each other.
 */
uint64_t page_bytes_find(const char *meminfo, const char *vmstat);

#endif
