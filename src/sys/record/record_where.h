/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_RECORD_WHERE_H
#define SYS_RECORD_WHERE_H

/*
 * --where of `allium sys record`: a query on each allocation. Most allocations are like an earlier one, so the answer
 * for each kind is kept.
 *
 * Why it is not the kernel's own filter of events (events/kmem/kmalloc/filter): an object whose free has no event is
 * known to be gone when its address is allocated again, whoever gets it. The kernel would leave out this allocation.
 *
 * Runs in: the tool. Threads: one. Owns: the query and answers, until record_where_release().
 */

#include <stdbool.h>

#include "base/error.h"
#include "base/hash_map.h"
#include "model/kernel/kmem_event.h"
#include "model/table/table_query.h"

struct kernel_code_names;

struct record_where {
    struct table_query query;
    struct table *one;  /* a table with one row: the allocation that is asked about */
    struct map answers; /* by kind of allocation: 0 or 1 */
};

/** `text`: NULL: every allocation fits. Returns 0, or -EINVAL with a line. */
int record_where_init(struct record_where *w, const char *text, struct error *e);
void record_where_release(struct record_where *w);
/** Returns whether the allocation fits. `names` is the same in each call. */
bool record_where_fits(struct record_where *w, const struct kernel_code_names *names,
                       const struct kmem_event *e);

#endif
