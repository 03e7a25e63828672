/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_RECORD_STACK_H
#define SYS_RECORD_STACK_H

/*
 * The stack of an event in the kernel's trace buffers, which has a record of its own.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdbool.h>

#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/page_format.h"
#include "collect/kernel/trace/trace_reader.h"

/**
 * Finds the stack of the event whose record the reader gives, and sets it in the event, from the event's call on;
 * `stack` holds it. An event without a stack stays without one. Returns false if its stack was not found among the
 * records that were searched, or does not contain the call.
 */
bool record_stack_find(const struct trace_reader *r, const struct kmem_format *f,
                       const struct page_format *pages, struct kmem_event *event,
                       uint64_t stack[static KMEM_EVENT_DEPTH_MAX]);

#endif
