/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/kernel/state: whatever the kernel's files about its own memory say, values stay in their
 * range, and what is computed from them holds together. The texts stand one behind the other, with NULs between them,
 * in the order of `paths`.
 */
#include "require.h"

#include <stdint.h>
#include <string.h>

#include "collect/kernel/state/memory_parse.h"
#include "model/kernel/frag_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[] = {
    "/proc/slabinfo", KERNEL_STATE_SLAB,    "/proc/buddyinfo", "/proc/pagetypeinfo",
    "/proc/zoneinfo", KERNEL_STATE_VMALLOC, "/proc/meminfo",   "/proc/vmstat",
};
#define PATHS (sizeof(paths) / sizeof(*paths))

struct input {
    char *texts[PATHS];
};

static const char *text_of(void *arg, const char *path)
{
    const struct input *in = arg;
    for (size_t i = 0; i < PATHS; i++)
        if (!strcmp(paths[i], path))
            return in->texts[i];
    return NULL;
}

static void check_state(const struct memory_state *s)
{
    vec_each (const struct memory_cache, c, &s->caches) {
        require(c->name && *c->name, "a cache without a name");
        for (int i = 0; i < CACHE_VALUES; i++)
            require(c->at[i] <= MEMORY_VALUE_MAX, "a value out of range");
        require(!memory_cache_has(c, CACHE_PER_SLAB) || c->at[CACHE_PER_SLAB], "a slab of nothing");
        require(c->at[CACHE_ORDER] < MEMORY_ORDERS_MAX, "an order out of range");
    }
    require(s->zones.len <= MEMORY_ZONES_MAX, "too many zones");
    vec_each (const struct memory_zone, z, &s->zones) {
        require(strnlen(z->name, sizeof(z->name)) < sizeof(z->name) && *z->name, "a zone without a name");
        for (unsigned i = 0; i < MEMORY_ORDERS_MAX; i++)
            require(z->blocks[i] <= MEMORY_VALUE_MAX >> i && (i < z->orders || !z->blocks[i]),
                    "too many blocks");
    }
    for (unsigned i = 0; i < s->n_types; i++)
        require(strnlen(s->types[i], MEMORY_NAME_BYTES) < MEMORY_NAME_BYTES, "a type without an end");
    vec_each (const struct memory_area, a, &s->areas)
        require(a->caller && *a->caller && (!a->placed || a->end - a->begin == a->bytes),
                "an area that is none");
}

static void check_range(const struct frag_range *r)
{
    require(r->low <= r->high && (r->known || !r->high), "bounds that are none");
}

static void check_frag(const struct frag *f)
{
    vec_each (const struct frag_cache, c, &f->caches) {
        const struct frag_range *at = c->at;
        for (int i = 0; i < FRAG_SLAB_PARTS; i++)
            check_range(&at[i]);
        check_range(&c->lost);
        if (at[FRAG_PADDING].known)
            require(at[FRAG_OBJECTS].high + c->lost.high == at[FRAG_BYTES].high,
                    "parts that are not the whole");
    }
    vec_each (const struct frag_zone, z, &f->zones)
        for (unsigned i = 0; i < z->of->orders; i++) {
            require(z->unusable[i] <= 1000, "an index over 1");
            require(z->extfrag[i] >= -1000 && z->extfrag[i] <= 1000, "an index over 1 or below -1");
        }
    require(f->vmalloc.holes <= f->vmalloc.areas, "more holes than areas");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in;
    struct memory_state s;
    struct frag f;
    for (size_t i = 0; i < PATHS; i++) {
        const size_t len = strnlen((const char *)data, size);
        in.texts[i] = size ? mem_strndup((const char *)data, len) : NULL;
        data += len < size ? len + 1 : len;
        size -= len < size ? len + 1 : len;
    }
    memory_parse(&s, text_of, &in, 4096);
    check_state(&s);
    frag_compute(&f, &s, &(struct frag_range){.known = false});
    check_frag(&f);
    table_free(frag_caches_table(&f));
    table_free(frag_orders_table(&f));
    table_free(frag_types_table(&f));
    table_free(frag_callers_table(&f));
    frag_release(&f);
    memory_state_release(&s);
    for (size_t i = 0; i < PATHS; i++)
        free(in.texts[i]);
    return 0;
}
