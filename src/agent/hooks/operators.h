/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_OPERATORS_H
#define AGENT_OPERATORS_H

/*
 * Hooks of C++ operator new and delete, all forms.
 *
 * If the allocator has operators of its own (jemalloc, tcmalloc, mimalloc), our hooks count, and call these
 * operators. (Most of them do not call malloc(); hook_layers.c finds those that call another hook.) The operators of
 * libstdc++ call malloc() and free(), whose hooks count already, so our hooks of these operators only jump to them. A
 * hook looks up the operator of libstdc++ when the hook is first called, because by then the caller's libstdc++ is
 * loaded, even by dlopen(RTLD_LOCAL).
 *
 * Runs in: target. Threads: any. Exceptions of the real operator pass through: no function here has a cleanup.
 */

#include <link.h>

#include "agent/hooks/next.h"

/** For each operator that the allocator's module defines: makes our hook count, and call this operator. */
void operators_adopt(const struct link_map *allocator);

/* The cold halves of the hooks that count; reached by tail jumps. They call *real. */
void *operators_new_cold(size_t size, size_t second, size_t third, next_new_fn *real);
void operators_delete_cold(void *p, size_t second, size_t third, next_delete_fn *real);

/* The first values of the operators in `next`: find the real operator, and jump to it. */
#define X(field, symbol) void *operators_resolve_##field(size_t size, size_t second, size_t third);
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol) void operators_resolve_##field(void *p, size_t second, size_t third);
NEXT_DELETE_FORMS(X)
#undef X

#endif
