/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_UNOBSERVED_READ_H
#define COLLECT_UNOBSERVED_READ_H

/*
 * Reads the processes that could not be observed, from the file that agents write and from the names of
 * marks.
 *
 * Runs in: the tool. Nothing in the file is trusted.
 */

#include <stdint.h>

#include "wire/preload_check.h"

/** `path` is "" if not known. `by` is 1, or -1 for a program that did not start after all. */
typedef void (*unobserved_fn)(void *arg, enum preload_check_result why, const char *path, int by);

/** Reports the lines of the file in this directory from *offset on, and advances it. */
void unobserved_read(const char *dir, uint64_t *offset, unobserved_fn take, void *arg);
/** Reports each mark in this directory, and removes it. A mark that cannot be removed is not reported. */
void unobserved_take_marks(const char *dir, unobserved_fn take, void *arg);
/** Returns the program in the name of a mark, and sets the reason; changes `name`. NULL: it is no mark. */
char *unobserved_parse_mark(char *name, int *why, uint64_t *id);

#endif
