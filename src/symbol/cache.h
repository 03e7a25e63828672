/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_CACHE_H
#define SYMBOL_CACHE_H

/*
 * What is known of one module's addresses, in memory and in a file named for the build id.
 *
 * Runs in: the tool. Owns: the frames, and the strings of those that were read from a file, until
 * symbol_cache_release().
 * Invariant: a file is taken whole or not at all; nothing in it is believed before it is checked.
 */

#include "base/hash_map.h"
#include "base/vec.h"
#include "symbol/symbol.h"

enum symbol_origin_kind {
    SYMBOL_ORIGIN_NONE,     /* no debug information was found: symbol tables only */
    SYMBOL_ORIGIN_SELF,     /* it is in the file itself */
    SYMBOL_ORIGIN_SEPARATE, /* it is in a file of its own */
};

/** Where names came from, to see whether they would be better now. */
struct symbol_origin {
    enum symbol_origin_kind kind;
    uint64_t size_bytes; /* of the separate file */
    int64_t mtime_ns;
    const char *link; /* .gnu_debuglink, or NULL; lives as long as the names pool or the cache */
};

struct symbol_cache_entry {
    uint64_t address;
    const struct symbol_frame *frames; /* innermost first */
    uint32_t len;                      /* 0: the files have no name for it */
};

struct symbol_cache {
    struct map index; /* address -> entries */
    struct VEC(struct symbol_cache_entry) entries;
    struct VEC(void *) blocks;
    struct symbol_origin origin;
    bool dirty; /* has what its file has not */
};

void symbol_cache_release(struct symbol_cache *c);
/** NULL when nothing is known; valid until the next add. */
const struct symbol_cache_entry *symbol_cache_find(const struct symbol_cache *c, uint64_t address);
/** Copies the frames, not their strings. A known address keeps what it has. */
void symbol_cache_add(struct symbol_cache *c, uint64_t address, const struct symbol_frame *frames,
                      size_t len);

/**
 * Adds what the bytes of a cache file say for this build id and sets the origin. 0, or -EBADMSG and nothing changed.
 * Takes the bytes (heap) in any case.
 */
int symbol_cache_parse(struct symbol_cache *c, char *bytes, size_t len, const unsigned char *build_id,
                       size_t build_id_len);
/** Reads dir/<build id>. 0, -EBADMSG or why it could not be read. */
int symbol_cache_load(struct symbol_cache *c, const char *dir, const unsigned char *build_id,
                      size_t build_id_len);
/** Adds what others wrote meanwhile, then replaces the file in one step. 0 or -errno; then the old file stands. */
int symbol_cache_save(struct symbol_cache *c, const char *dir, const unsigned char *build_id,
                      size_t build_id_len);

#endif
