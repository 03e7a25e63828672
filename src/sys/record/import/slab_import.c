/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/import/slab_import.h"

#include <string.h>

static bool is_same_function(const char *a, const char *b)
{
    const size_t len = strcspn(a, "+ ");
    return len && strcspn(b, "+ ") == len && !strncmp(a, b, len);
}

/*
 * The first frames may be the allocator's: they are passed over, up to the one with the function of the call. Without
 * such a frame there is no stack. Returns its depth.
 */
static uint32_t stack_of(struct kernel_import *i, const struct slab_trace *trace, uint64_t call,
                         uint64_t stack[static KMEM_EVENT_DEPTH_MAX])
{
    uint32_t depth = 0;
    for (const char *line = trace->stack; *line && depth < KMEM_EVENT_DEPTH_MAX; line += *line == '\n') {
        const size_t len = strcspn(line, "\n");
        if (depth)
            stack[depth++] = kernel_import_call(i, line, len);
        else if (is_same_function(trace->site, line))
            stack[depth++] = call;
        line += len;
    }
    return depth;
}

/* Whether the kernel tells what kmalloc() was asked for: since Linux 6.1. Objects of other caches have one size. */
static bool tells_waste(const struct slab_traces *t)
{
    vec_each (const struct slab_trace, trace, &t->all)
        if (trace->waste_bytes)
            return true;
    return false;
}

static void add(struct kernel_import *i, const struct slab_trace *trace, uint64_t tick_ns, bool has_waste)
{
    uint64_t stack[KMEM_EVENT_DEPTH_MAX], bytes;
    struct kernel_import_counts *n = kernel_import_counts(i);
    const uint64_t call = kernel_import_call(i, trace->site, strlen(trace->site));
    const uint32_t depth = stack_of(i, trace, call, stack);
    if (__builtin_mul_overflow(trace->objects, trace->object_bytes, &bytes) ||
        (bytes && trace->waste_bytes > bytes)) {
        n->broken++;
        return;
    }
    const bool is_added = kmem_accounts_hold(
        kernel_import_capture(i)->accounts,
        &(struct kmem_held){.call_site = call,
                            .cache = trace->cache,
                            .stack = depth ? stack : NULL,
                            .depth = depth,
                            .objects = trace->objects,
                            .bytes = bytes,
                            .requested_bytes = bytes ? bytes - trace->waste_bytes : 0,
                            .oldest_ns = trace->age_max < UINT32_MAX ? trace->age_max * tick_ns : 0,
                            .no_bytes = !bytes});
    n->broken += !is_added;
    n->without_size += is_added && !bytes ? trace->objects : 0;
    n->without_requested +=
        is_added && bytes && !has_waste && strstr(trace->cache, "kmalloc-") ? trace->objects : 0;
    n->without_stack += *trace->stack && !depth ? trace->objects : 0;
}

void slab_import_add(struct kernel_import *i, const struct slab_traces *t, uint64_t tick_ns,
                     uint64_t written_ns)
{
    const bool has_waste = tells_waste(t);
    struct kernel_capture *c = kernel_import_capture(i);
    vec_each (const struct slab_trace, trace, &t->all)
        if (!trace->is_freed)
            add(i, trace, tick_ns, has_waste);
    kernel_import_counts(i)->broken += t->broken;
    c->comms = false;
    c->no_ages = !tick_ns;
    kernel_import_time(i, written_ns);
    kernel_import_end(i, 0);
}
