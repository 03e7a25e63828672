/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_OPERATORS_H
#define AGENT_OPERATORS_H

/*
 * C++ operator new and delete, all forms.
 *
 * The operators of an allocator that has its own (jemalloc, tcmalloc, mimalloc) do not call malloc: ours count, then
 * forward to them. The operators of libstdc++ call malloc and free, which count already: ours only forward. The
 * libstdc++ to forward to is looked up at the first call of each operator: by then the caller's is loaded, even one
 * that dlopen(RTLD_LOCAL) brought.
 *
 * Runs in: target. Threads: any. Exceptions of the real operator pass through: no frame here has a cleanup.
 */

#include <link.h>

#include "agent/hooks/next.h"

/** Uses the operators of the allocator's module, if it has any. */
void operators_adopt(const struct link_map *allocator);

/* The cold halves, reached by tail jumps. */
void *operators_new_cold(size_t size, size_t second, size_t third, next_new_fn *real);
void operators_delete_cold(void *p, size_t second, size_t third, next_delete_fn *real);

#define X(field, symbol) void *operators_resolve_##field(size_t size, size_t second, size_t third);
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol) void operators_resolve_##field(void *p, size_t second, size_t third);
NEXT_DELETE_FORMS(X)
#undef X

#endif
