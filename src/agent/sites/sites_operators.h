/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_OPERATORS_H
#define AGENT_SITES_OPERATORS_H

/*
 * C++ operators of processes that keep accounts of call sites: the site is who called the operator.
 *
 * libstdc++'s operators only call malloc, aligned_alloc and free, which would make the operator the site. So it is passed
 * over as long as there is memory: what it would do then is done here.
 *
 * Runs in: target. Threads: any.
 */

#include "agent/hooks/operators.h"

/** Those of an allocator that brings its own: from now on with accounts. */
void sites_operators_begin(void);

/** What shall stand for the real operator. */
#define X(field, symbol) next_new_fn sites_instead_##field(next_new_fn real);
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol) next_delete_fn sites_instead_##field(next_delete_fn real);
NEXT_DELETE_FORMS(X)
#undef X

#endif
