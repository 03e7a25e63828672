/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_HASH_MAP_H
#define BASE_HASH_MAP_H

/*
 * A hash map from bytes (or a 64-bit integer) to an index, for interning. Keys are copied and never removed.
 *
 * Runs in: the tool. Owns: the copied keys, until map_release().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
    struct map_slot *slots;
    size_t len, cap; /* cap is 0 or a power of two */
    char *keys;      /* keys that do not fit into their slots */
    size_t keys_bytes, keys_room;
};

#define MAP_NONE SIZE_MAX

void map_release(struct map *m);
/** Returns the value stored for the key, or MAP_NONE. */
size_t map_get(const struct map *m, const void *key, size_t key_len);
/**
 * If the key is new, stores `value` for it. Returns the value that is stored for the key now. `added`: NULL, or
 * receives whether the key is new.
 */
size_t map_put(struct map *m, const void *key, size_t key_len, size_t value, bool *added);

/** The same with a number for a key. */
size_t map_get_u64(const struct map *m, uint64_t key);
size_t map_put_u64(struct map *m, uint64_t key, size_t value, bool *added);

#endif
