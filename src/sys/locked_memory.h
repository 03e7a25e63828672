/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_LOCKED_MEMORY_H
#define SYS_LOCKED_MEMORY_H

/*
 * Memory for a tool that must speak when there is none: taken, touched and locked before it matters, so that showing an
 * event asks the kernel for no page.
 *
 * Runs in: the tool.
 */

#include "sys/session.h"

/**
 * Rehearses an event, which reads what its names need, lets the heap grow for what comes, and locks all of it. To be
 * called before privileges are dropped. 0; or -errno: memory could not be locked, and may be taken away.
 */
int vm_reserve(struct sys_session *s);

#endif
