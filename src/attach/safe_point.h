/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ATTACH_SAFE_POINT_H
#define ATTACH_SAFE_POINT_H

/*
 * Proves that a stopped thread may call a function of the loader: no function on its stack can hold a lock of the
 * loader or the allocator, or was stopped while it changed their data. The stack is walked to its end. No frame may be
 * in the loader, in an allocator, or in the C library, but for the functions that every thread begins with, and for one
 * listed function that waits in a system call.
 *
 * Runs in: the tool.
 */

#include <stdbool.h>

#include "attach/stop.h"
#include "attach/target_process.h"

/** Returns NULL if it is at a safe point; else where it is, in words, valid until the next call. */
const char *safe_point_refuse(const struct target *t, const struct stopped_thread *thread);
/** Returns the exported function of the C library that the thread is in; NULL: it is in none. */
const char *safe_point_function(const struct target *t, const struct stopped_thread *thread);

#endif
