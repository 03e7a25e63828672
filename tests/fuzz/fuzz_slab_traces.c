/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the texts from which a boot's report is made: alloc_traces, records of the kernel's log, its line on
 * reserved memory, and the command line. Whatever they say, texts that are read are texts, and no bound crosses the
 * other.
 */
#include "require.h"

#include "collect/kernel/slab_traces.h"
#include "model/kernel/boot_parameters.h"
#include "model/kernel/early_objects.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Caches and live objects are drawn from the bytes. */
static void check_bounds(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"kmalloc-64", "dentry", "trace_event_file",
                                        "filp",       "",       "kmalloc-cg-64"};
    struct early_objects *o = early_objects_new();
    size_t n;
    for (size_t i = 0; i + 5 <= size && i < 500; i += 5) {
        const char *name = names[data[i] % 6];
        const uint64_t stride = 64u << (data[i + 1] % 2), amount = data[i + 2];
        const bool is_kmalloc = !strncmp(name, "kmalloc", 7);
        if (data[i + 3] & 1)
            early_objects_add_cache(o, &(struct early_cache){name, stride, amount, amount + data[i + 4],
                                                             data[i + 3] & 2 ? EARLY_UNKNOWN : data[i + 4],
                                                             is_kmalloc, data[i + 3] & 4});
        else if (data[i + 3] & 2)
            early_objects_add_frees(o, name, amount);
        else
            early_objects_add_live(o, &(struct early_live){name, data[i + 3] & 8, stride, amount});
    }
    early_objects_set_own(o, 64, size % 64);
    early_objects_compute(o, size & 1);
    const struct early_row *rows = early_objects_rows(o, &n);
    for (size_t i = 0; i < n; i++) {
        require(rows[i].low <= rows[i].high && rows[i].high <= rows[i].active, "bounds of %s",
                rows[i].caches);
        require(rows[i].own_low <= rows[i].own_high && rows[i].own_high <= rows[i].active, "own bounds of %s",
                rows[i].caches);
    }
    const struct early_sums s = early_objects_sums(o);
    require(s.low_bytes <= s.high_bytes && s.own_low_bytes <= s.own_high_bytes, "sums");
    early_objects_free(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slab_traces t = {.all = {0}};
    struct early_reserved r;
    char *text = mem_strndup((const char *)data, size);
    char cache[16];
    t.code_sizes = size & 1;
    slab_traces_is_text(text, strlen(text));
    slab_traces_name(text, cache, sizeof(cache));
    slab_traces_parse(&t, "kmalloc-1k", false, text);
    slab_traces_find_sizes(&t, text);
    vec_each (const struct slab_trace, trace, &t.all) {
        require(trace->objects, "no object");
        require(t.code_sizes || (!strchr(trace->site, '/') && !strchr(trace->stack, '/')), "a size in %s",
                trace->site);
        require(!strchr(trace->site, '\n') && trace->object_bytes, "a site, or no size");
    }
    slab_traces_release(&t);
    early_reserved_parse(&r, text);
    boot_parameters_trace(text, "kmem", "kfree");
    check_bounds(data, size);
    free(text);
    return 0;
}
