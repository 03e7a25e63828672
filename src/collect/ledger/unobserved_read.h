/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_UNOBSERVED_READ_H
#define COLLECT_UNOBSERVED_READ_H

/*
 * Processes that could not be observed, from the file that agents write about them, and from the names of marks.
 *
 * Runs in: the tool. Believes nothing of what the file says.
 */

#include <stdint.h>

#include "wire/preload_check.h"

/** `path` "": not known. `by`: 1, or -1 for one that did not start after all. */
typedef void (*unobserved_fn)(void *arg, enum carrier why, const char *path, int by);

/** Tells what was noted in this directory beyond *offset bytes of the file, and moves it on. */
void unobserved_read(const char *dir, uint64_t *offset, unobserved_fn take, void *arg);
/** Tells each mark in this directory, and removes it. A mark that cannot be removed is not told. */
void unobserved_take_marks(const char *dir, unobserved_fn take, void *arg);
/** The program and the reason in the name of a mark, which is changed; NULL: it is no mark. */
char *unobserved_parse_mark(char *name, int *why, uint64_t *id);

#endif
