/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_LOCKED_MEMORY_H
#define SYS_LOCKED_MEMORY_H

/*
 * Memory for a tool that must report when the machine has none: it is allocated, touched and locked in
 * advance, so that showing an event needs no page from the kernel.
 */

#include "sys/session.h"

/**
 * Processes a sample event, which reads the data for its names and lets the heap grow, and then locks all
 * memory. Call it before privileges are dropped. Returns 0, or -errno if the memory could not be locked and
 * may be reclaimed.
 */
int locked_memory_reserve(struct sys_session *s);

#endif
