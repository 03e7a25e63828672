/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_OPERATORS_H
#define AGENT_OPERATORS_H

/*
 * Hooks of C++ operator new and delete, all forms.
 *
 * If the allocator has operators of its own (jemalloc, tcmalloc, mimalloc), they do not call malloc(): our hooks count,
 * then jump to them. The operators of libstdc++ call malloc() and free(), whose hooks count already: our hooks of the
 * operators only jump to them. Each hook looks up the operator of libstdc++ when it is first called, because by then
 * the caller's libstdc++ is loaded, even by dlopen(RTLD_LOCAL).
 *
 * Runs in: target. Threads: any. Exceptions of the real operator pass through: no function here has a cleanup.
 */

#include <link.h>

#include "agent/hooks/next.h"

/** Makes the hooks count and call the operators of the allocator's module, if it has any. */
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
