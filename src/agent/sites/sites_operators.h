/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_OPERATORS_H
#define AGENT_SITES_OPERATORS_H

/*
 * The C++ operators of processes that keep accounts of call sites, or trace. The site is the program's call of the
 * operator.
 *
 * The operators of libstdc++ only call malloc, aligned_alloc and free, so that the site would lie in libstdc++. The
 * agent does not call these operators, but does the same itself, unless there is no memory, or a module of the program
 * replaces an operator of libstdc++ (is_library_whole()).
 *
 * Runs in: target. Threads: any.
 */

#include "agent/hooks/operators.h"

/** If the allocator has operators of its own: makes the exported operators jump to functions that call these operators
 * and count. */
void sites_operators_begin(void);
/** The same for a process that traces (tracer/tracer.h). */
void sites_operators_trace(void);

#endif
