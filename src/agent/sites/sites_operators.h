/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_OPERATORS_H
#define AGENT_SITES_OPERATORS_H

/*
 * C++ operators of processes that keep accounts of call sites: the site is who called the operator.
 *
 * libstdc++'s operators only call malloc, aligned_alloc and free, which would make the operator the site. So it is
 * passed over as long as there is memory: what it would do then is done here.
 *
 * Runs in: target. Threads: any.
 */

#include "agent/hooks/operators.h"

/** Those of an allocator that brings its own: from now on with accounts. */
void sites_operators_begin(void);

#endif
