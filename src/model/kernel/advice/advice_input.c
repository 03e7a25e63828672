/* SPDX-License-Identifier: BSD-2-Clause */
/* What advice is computed from. */
#include "model/kernel/advice/advice.h"

#include <stdlib.h>
#include <string.h>

#include "model/kernel/memory_state.h"

/* Sheaves are arrays of free objects. A CPU has at most three, a node keeps ten full ones (MAX_FULL_SHEAVES). */
#define SHEAVES_OF_CPU  3u
#define SHEAVES_OF_NODE 10u

static const enum memory_cache_value needed[] = {CACHE_STRIDE_BYTES, CACHE_PER_SLAB,     CACHE_ORDER,
                                                 CACHE_SLABS,        CACHE_ROOM,         CACHE_USED,
                                                 CACHE_PARTIAL,      CACHE_PARTIAL_USED, CACHE_RECLAIMABLE};

static bool is_whole(const struct memory_cache *c)
{
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        if (!memory_cache_has(c, needed[i]))
            return false;
    return c->at[CACHE_STRIDE_BYTES] && c->at[CACHE_PER_SLAB];
}

/* Unknown values are 0, which makes a kernel without lists of the CPUs of one that does not tell them. */
static uint64_t sheaf_objects(const struct memory_state *s, const struct memory_cache *c, uint64_t nodes)
{
    if (!s->cpus)
        return c->at[CACHE_SHEAF] ? c->at[CACHE_ROOM] : 0;
    return c->at[CACHE_SHEAF] * (SHEAVES_OF_CPU * s->cpus + SHEAVES_OF_NODE * nodes);
}

static void take_cache(struct advice_input *in, const struct memory_state *s, const struct memory_cache *c)
{
    const uint64_t nodes = s->nodes ? s->nodes : 1;
    *vec_push(&in->caches) = (struct advice_cache){
        .name = mem_strdup(c->name),
        .aliases = c->aliases ? mem_strdup(c->aliases) : NULL,
        .object_bytes = c->at[CACHE_STRIDE_BYTES],
        .align = c->at[CACHE_ALIGN] ? c->at[CACHE_ALIGN] : 1,
        .per_slab = c->at[CACHE_PER_SLAB],
        .slab_bytes = in->page_bytes << c->at[CACHE_ORDER],
        .slabs = c->at[CACHE_SLABS],
        .room = c->at[CACHE_ROOM],
        .used = c->at[CACHE_USED],
        .partial = c->at[CACHE_PARTIAL],
        .partial_used = c->at[CACHE_PARTIAL_USED],
        .cpu_slabs = c->at[CACHE_CPU_SLABS],
        .cpu_partial_slabs = c->at[CACHE_CPU_PARTIAL_SLABS],
        .cpu_partial = c->at[CACHE_CPU_PARTIAL_LIMIT],
        .min_partial = c->at[CACHE_MIN_PARTIAL],
        .nodes = nodes,
        .sheaf_objects = sheaf_objects(s, c, nodes),
        .order = (unsigned)c->at[CACHE_ORDER],
        .reclaimable = c->at[CACHE_RECLAIMABLE] != 0,
    };
}

/* The largest first. */
static int by_bytes(const void *one, const void *other)
{
    const struct advice_cache *a = one, *b = other;
    const double x = (double)a->slabs * (double)a->slab_bytes, y = (double)b->slabs * (double)b->slab_bytes;
    return x < y ? 1 : x > y ? -1 : strcmp(a->name, b->name);
}

void advice_take_memory(struct advice_input *in, const struct memory_state *s)
{
    in->page_bytes = s->page_bytes;
    in->cpus = s->cpus;
    vec_each (const struct memory_cache, c, &s->caches)
        if (is_whole(c))
            take_cache(in, s, c);
    if (in->caches.len)
        qsort(in->caches.at, in->caches.len, sizeof(*in->caches.at), by_bytes);
    if (memory_state_has(s, MEMORY_TOTAL))
        in->memory_bytes = (struct advice_figure){true, s->figures[MEMORY_TOTAL]};
}

size_t advice_take_call(struct advice_input *in, const char *name, const char *file)
{
    bool added;
    const size_t i = map_put(&in->call_index, name, strlen(name), in->calls.len, &added);
    if (added)
        *vec_push(&in->calls) =
            (struct advice_call){.name = mem_strdup(name), .file = file ? mem_strdup(file) : NULL};
    return i;
}

static bool is_below(const char *file, const char *path)
{
    const size_t len = strlen(path);
    return len && (path[len - 1] == '/' ? !strncmp(file, path, len) : !strcmp(file, path));
}

bool advice_option_brings(const struct advice_option *o, const char *file)
{
    vec_each (char *const, path, &o->paths)
        if (is_below(file, *path))
            return true;
    return false;
}

void advice_input_release(struct advice_input *in)
{
    vec_each (struct advice_cache, c, &in->caches) {
        free(c->name);
        free(c->aliases);
    }
    vec_each (struct advice_call, c, &in->calls) {
        free(c->name);
        free(c->file);
    }
    vec_each (struct advice_table, t, &in->tables)
        free(t->name);
    vec_each (struct advice_module, m, &in->modules)
        free(m->name);
    vec_each (struct advice_option, o, &in->options) {
        vec_each (char *, path, &o->paths)
            free(*path);
        vec_release(&o->paths);
        free(o->name);
    }
    vec_release(&in->caches);
    vec_release(&in->calls);
    vec_release(&in->sizes);
    vec_release(&in->tables);
    vec_release(&in->options);
    vec_release(&in->modules);
    map_release(&in->call_index);
    map_release(&in->option_index);
}
