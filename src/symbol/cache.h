/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_CACHE_H
#define SYMBOL_CACHE_H

/*
 * A cache of the names of one module's addresses, in memory and in a file named for the build id.
 *
 * Runs in: the tool.
 * Owns: the frames, and the strings that were read from a file, until symbol_cache_release().
 * Invariant: a file is read whole or not at all, and nothing in it is used before it is checked.
 */

#include "base/hash_map.h"
#include "base/vec.h"
#include "symbol/symbol.h"

enum symbol_origin_kind {
    SYMBOL_ORIGIN_NONE,     /* no debug information was found: only symbol tables */
    SYMBOL_ORIGIN_SELF,     /* the debug information is in the module's file */
    SYMBOL_ORIGIN_SEPARATE, /* the debug information is in a separate file */
};

/** The source of the names. It shows whether another lookup would give better names now. */
struct symbol_origin {
    enum symbol_origin_kind kind;
    uint64_t size_bytes; /* of the separate file */
    int64_t mtime_ns;
    const char *link; /* .gnu_debuglink, or NULL; valid as long as the names pool or the cache */
};

struct symbol_cache_entry {
    uint64_t address;
    const struct symbol_frame *frames; /* innermost first */
    uint32_t len;                      /* 0: the files have no name for the address */
};

struct symbol_cache {
    struct map index; /* address -> entries */
    struct VEC(struct symbol_cache_entry) entries;
    struct VEC(void *) blocks;
    struct symbol_origin origin;
    bool dirty; /* the cache has entries that its file lacks */
};

void symbol_cache_release(struct symbol_cache *c);
/** Returns the entry of the address, or NULL. It is valid until the next symbol_cache_add(). */
const struct symbol_cache_entry *symbol_cache_find(const struct symbol_cache *c, uint64_t address);
/** Adds an entry. Copies the frames, not their strings. An address that is known already keeps its entry. */
void symbol_cache_add(struct symbol_cache *c, uint64_t address, const struct symbol_frame *frames,
                      size_t len);

/**
 * Adds the entries in the bytes of a cache file for this build id and sets the origin. Returns 0, or -EBADMSG
 * with nothing changed. Frees the bytes (heap) in any case.
 */
int symbol_cache_parse(struct symbol_cache *c, char *bytes, size_t len, const unsigned char *build_id,
                       size_t build_id_len);
/** Reads dir/<build id>. Returns 0, -EBADMSG, or the error of reading the file. */
int symbol_cache_load(struct symbol_cache *c, const char *dir, const unsigned char *build_id,
                      size_t build_id_len);
/** Adds the entries that other processes wrote to the file meanwhile, then replaces the file in one step.
 * Returns 0, or -errno with the old file in place. */
int symbol_cache_save(struct symbol_cache *c, const char *dir, const unsigned char *build_id,
                      size_t build_id_len);

#endif
