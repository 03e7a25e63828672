/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ALLOC_TEXTS_H
#define MODEL_ALLOC_TEXTS_H

/*
 * The names in accounts (functions, files, modules, tags): each text is stored once and has a number.
 *
 * Runs in: the tool. Threads: one at a time.
 * Owns: the texts; accounts refer to them by number and hold no pointers.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "query/query.h"

/* the number of an unknown text, and the module of code that is built into the kernel */
#define ALLOC_NO_TEXT 0u

/** Begins zeroed. */
struct alloc_texts {
    struct map by_text;
    struct buf bytes;
    struct VEC(size_t) at; /* offsets in `bytes`; at[0] belongs to number 1 */
};

/** Returns the text's number; `bytes` hold no NUL. */
uint32_t alloc_texts_put(struct alloc_texts *t, const char *bytes, size_t len);
/** The same of a string; ALLOC_NO_TEXT if it is empty. */
uint32_t alloc_texts_put_string(struct alloc_texts *t, const char *text);
/** Returns NULL for ALLOC_NO_TEXT. The text is valid until the next one is put. */
const char *alloc_texts_get(const struct alloc_texts *t, uint32_t text);
void alloc_texts_release(struct alloc_texts *t);
/** Returns the directory of a path: "mm" for "mm/slub.c", "." for "a.c", "/" for "/a.c". */
uint32_t alloc_texts_directory(struct alloc_texts *t, uint32_t file);
/** Offers each directory above a path: "drivers/net" and "drivers" for "drivers/net/a.c"; none for NULL. */
void alloc_offer_directories(const char *path, struct query_probe *probe);

#endif
