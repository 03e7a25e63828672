/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/map.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct map_slot {
    void *key; /* NULL: empty */
    size_t key_len;
    uint64_t hash;
    size_t value;
};

static uint64_t hash_bytes(const void *key, size_t len)
{
    const unsigned char *p = key;
    uint64_t h = 0x9e3779b97f4a7c15u ^ len;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    for (; len; len--, p++)
        h = (h ^ *p) * 0x100000001b3u;
    h ^= h >> 29;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 32;
}

void map_release(struct map *m)
{
    for (size_t i = 0; i < m->cap; i++)
        free(m->slots[i].key);
    free(m->slots);
    *m = (struct map){0};
}

static struct map_slot *find(const struct map *m, const void *key, size_t key_len, uint64_t hash)
{
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct map_slot *s = &m->slots[i];
        if (!s->key)
            return s;
        if (s->hash == hash && s->key_len == key_len && !memcmp(s->key, key, key_len))
            return s;
    }
}

size_t map_get(const struct map *m, const void *key, size_t key_len)
{
    if (!m->cap)
        return MAP_NONE;
    struct map_slot *s = find(m, key, key_len, hash_bytes(key, key_len));
    return s->key ? s->value : MAP_NONE;
}

static void grow(struct map *m)
{
    struct map bigger = {.cap = m->cap ? m->cap * 2 : 16, .len = m->len};
    bigger.slots = mem_array(bigger.cap, sizeof(*bigger.slots));
    for (size_t i = 0; i < m->cap; i++) {
        struct map_slot *s = &m->slots[i];
        if (s->key)
            *find(&bigger, s->key, s->key_len, s->hash) = *s;
    }
    free(m->slots);
    *m = bigger;
}

size_t map_put(struct map *m, const void *key, size_t key_len, size_t value, bool *added)
{
    if ((m->len + 1) * 4 > m->cap * 3)
        grow(m);
    uint64_t hash = hash_bytes(key, key_len);
    struct map_slot *s = find(m, key, key_len, hash);
    if (added)
        *added = !s->key;
    if (s->key)
        return s->value;
    s->key = mem_alloc(key_len + 1);
    memcpy(s->key, key, key_len);
    s->key_len = key_len;
    s->hash = hash;
    s->value = value;
    m->len++;
    return value;
}
