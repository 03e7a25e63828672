/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_UNOBSERVED_READ_H
#define COLLECT_UNOBSERVED_READ_H

/*
 * Programs that were started without the agent, from the file that agents write about them.
 *
 * Runs in: the tool. Believes nothing of what the file says.
 */

#include <stdint.h>

#include "wire/preload_check.h"

/** `path` "": not known. `by`: 1, or -1 for one that did not start after all. */
typedef void (*unobserved_fn)(void *arg, enum carrier why, const char *path, int by);

/** Tells what was noted in this directory beyond *offset bytes of the file, and moves it on. */
void unobserved_read(const char *dir, uint64_t *offset, unobserved_fn take, void *arg);

#endif
