/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/cache.h"

#include <string.h>

void symbol_cache_release(struct symbol_cache *c)
{
    vec_each (void *, block, &c->blocks)
        free(*block);
    vec_release(&c->blocks);
    vec_release(&c->entries);
    map_release(&c->index);
    *c = (struct symbol_cache){0};
}

const struct symbol_cache_entry *symbol_cache_find(const struct symbol_cache *c, uint64_t address)
{
    size_t at = map_get_u64(&c->index, address);
    return at == MAP_NONE ? NULL : &c->entries.at[at];
}

void symbol_cache_add(struct symbol_cache *c, uint64_t address, const struct symbol_frame *frames, size_t len)
{
    bool added;
    map_put_u64(&c->index, address, c->entries.len, &added);
    if (!added)
        return;
    struct symbol_frame *copy = NULL;
    if (len) {
        copy = mem_array(len, sizeof(*copy));
        memcpy(copy, frames, len * sizeof(*copy));
        *vec_push(&c->blocks) = copy;
    }
    *vec_push(&c->entries) = (struct symbol_cache_entry){address, copy, (uint32_t)len};
    c->dirty = true;
}
