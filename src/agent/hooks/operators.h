/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_OPERATORS_H
#define AGENT_OPERATORS_H

/*
 * C++ operator new and delete, all forms.
 *
 * An allocator that brings its own (jemalloc, tcmalloc, mimalloc) does not call malloc in them: ours count, then
 * forward to its. libstdc++'s call malloc and free, which count already: ours only forward. Which libstdc++ is looked
 * up at the first use, when the caller's own is surely loaded, even one that came with dlopen(RTLD_LOCAL).
 *
 * Runs in: target. Threads: any. Exceptions of the real operator pass through: no frame here has a cleanup.
 */

#include <link.h>

#include "agent/hooks/next.h"

/** Uses the operators of the allocator's module, if it has any. */
void operators_adopt(const struct link_map *allocator);

/* What counts and is not hot, reached by tail jumps. */
void *operators_new_cold(size_t size, size_t second, size_t third, next_new_fn *real);
void operators_delete_cold(void *p, size_t second, size_t third, next_delete_fn *real);

#define X(field, symbol) void *operators_resolve_##field(size_t size, size_t second, size_t third);
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol) void operators_resolve_##field(void *p, size_t second, size_t third);
NEXT_DELETE_FORMS(X)
#undef X

#endif
