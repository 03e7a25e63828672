/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/hash_map.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct map_slot {
    uint64_t hash; /* 0: empty */
    size_t key_len, value;
    union {
        char here[8]; /* a key of at most 8 bytes */
        size_t at;    /* offset of a longer key in map.keys */
    };
};

/* Most maps have numbers for keys: what is inlined with their length takes a third of the time. */
#define INLINED static inline __attribute__((always_inline))

INLINED uint64_t hash_bytes(const void *key, size_t len)
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
    return (h ^ h >> 32) | 1ull << 63;
}

void map_release(struct map *m)
{
    free(m->slots);
    free(m->keys);
    *m = (struct map){0};
}

INLINED bool is_short(size_t key_len)
{
    return key_len <= sizeof((struct map_slot){0}.here);
}

INLINED bool has_key(const struct map *m, const struct map_slot *s, const void *key, size_t key_len)
{
    return s->key_len == key_len && !memcmp(is_short(key_len) ? s->here : m->keys + s->at, key, key_len);
}

/* Returns the slot of the key; if the map does not have the key, the empty slot in which it would be stored. */
INLINED struct map_slot *find(const struct map *m, const void *key, size_t key_len, uint64_t hash)
{
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct map_slot *s = &m->slots[i];
        if (!s->hash || (s->hash == hash && has_key(m, s, key, key_len)))
            return s;
    }
}

INLINED size_t get(const struct map *m, const void *key, size_t key_len)
{
    if (!m->cap)
        return MAP_NONE;
    const struct map_slot *s = find(m, key, key_len, hash_bytes(key, key_len));
    return s->hash ? s->value : MAP_NONE;
}

size_t map_get(const struct map *m, const void *key, size_t key_len)
{
    return get(m, key, key_len);
}

size_t map_get_u64(const struct map *m, uint64_t key)
{
    return get(m, &key, sizeof(key));
}

static void grow(struct map *m)
{
    size_t cap = m->cap ? m->cap * 2 : 16;
    struct map_slot *slots = mem_array(cap, sizeof(*slots));
    for (size_t i = 0; i < m->cap; i++) {
        if (!m->slots[i].hash)
            continue;
        size_t to = m->slots[i].hash & (cap - 1);
        while (slots[to].hash) /* need not compare keys, because all keys in the map differ */
            to = (to + 1) & (cap - 1);
        slots[to] = m->slots[i];
    }
    free(m->slots);
    m->slots = slots;
    m->cap = cap;
}

static void keep_key(struct map *m, struct map_slot *s, const void *key)
{
    if (is_short(s->key_len)) {
        memcpy(s->here, key, s->key_len);
        return;
    }
    if (s->key_len > m->keys_room - m->keys_bytes) {
        m->keys_room = (m->keys_room + s->key_len) * 2;
        m->keys = mem_resize(m->keys, m->keys_room);
    }
    memcpy(m->keys + m->keys_bytes, key, s->key_len);
    s->at = m->keys_bytes;
    m->keys_bytes += s->key_len;
}

INLINED size_t put(struct map *m, const void *key, size_t key_len, size_t value, bool *added)
{
    if ((m->len + 1) * 4 > m->cap * 3)
        grow(m);
    uint64_t hash = hash_bytes(key, key_len);
    struct map_slot *s = find(m, key, key_len, hash);
    if (added)
        *added = !s->hash;
    if (s->hash)
        return s->value;
    *s = (struct map_slot){.hash = hash, .key_len = key_len, .value = value};
    keep_key(m, s, key);
    m->len++;
    return value;
}

size_t map_put(struct map *m, const void *key, size_t key_len, size_t value, bool *added)
{
    return put(m, key, key_len, value, added);
}

size_t map_put_u64(struct map *m, uint64_t key, size_t value, bool *added)
{
    return put(m, &key, sizeof(key), value, added);
}
