/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/memory_state.h"

#include <stdio.h>

_Static_assert(CACHE_VALUES <= 32 && ZONE_VALUES <= 32 && MEMORY_FIGURES <= 32, "one bit for each value");

void memory_state_release(struct memory_state *s)
{
    vec_each (struct memory_cache, c, &s->caches) {
        free(c->name);
        free(c->aliases);
    }
    vec_each (struct memory_area, a, &s->areas)
        free(a->caller);
    vec_release(&s->caches);
    vec_release(&s->zones);
    vec_release(&s->areas);
}

struct memory_cache *memory_state_cache(const struct memory_state *s, const char *name)
{
    vec_each (struct memory_cache, c, &s->caches)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

struct memory_zone *memory_state_zone(struct memory_state *s, unsigned node, const char *name)
{
    vec_each (struct memory_zone, z, &s->zones)
        if (z->node == node && !strcmp(z->name, name))
            return z;
    if (s->zones.len == MEMORY_ZONES_MAX)
        return NULL;
    struct memory_zone *z = vec_push(&s->zones);
    z->node = node;
    snprintf(z->name, sizeof(z->name), "%s", name);
    return z;
}

static void set(uint32_t *known, uint64_t *at, unsigned v, uint64_t value)
{
    if (value > MEMORY_VALUE_MAX)
        return;
    at[v] = value;
    *known |= UINT32_C(1) << v;
}

void memory_cache_set(struct memory_cache *c, enum memory_cache_value v, uint64_t value)
{
    if ((v != CACHE_PER_SLAB || value) && (v != CACHE_ORDER || value < MEMORY_ORDERS_MAX))
        set(&c->known, c->at, v, value);
}

void memory_zone_set(struct memory_zone *z, enum memory_zone_value v, uint64_t value)
{
    set(&z->known, z->at, v, value);
}

void memory_state_set(struct memory_state *s, enum memory_figure f, uint64_t value)
{
    set(&s->known, s->figures, f, value);
}
