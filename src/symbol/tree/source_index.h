/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_SOURCE_INDEX_H
#define SYMBOL_SOURCE_INDEX_H

/*
 * The functions that a kernel's source defines, with file and line, and the words of its Makefiles. It is made once for
 * each source, and kept in a file.
 *
 * Runs in: the tool. Threads: one at a time. Owns: everything, until source_index_free(); what it returns, too.
 * Invariant: a file is written whole or not at all; one that is damaged, or of another state of the source, is made
 * anew, and nothing in it is used before it is checked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct source_index;

/** A definition. */
struct source_function {
    uint32_t hash, name; /* `name`: a text; `hash` is that of it */
    uint32_t file, line; /* `file`: an index */
};

/** A word of a Makefile, see makefile_words.h; all are texts. */
struct source_word {
    uint32_t folder, base, option, text; /* `folder`: "fs/ext4/"; `option`: "" if there is none */
};

/**
 * Reads the index of the source (a folder or an archive) from the folder `cache`, or makes it, and keeps it there.
 * `cache` NULL: it is kept nowhere. `made`: NULL, or set to whether it was made. Returns 0, or -errno with a line.
 */
int source_index_open(struct source_index **out, const char *source, const char *cache, bool *made,
                      struct error *e);
/** NULL is allowed. */
void source_index_free(struct source_index *s);

/** Returns "6.12.117": what the Makefile of the tree says; "" if it does not. */
const char *source_index_version(const struct source_index *s);
/** Returns a text of the index. */
const char *source_index_text(const struct source_index *s, uint32_t text);
/** Returns the path of a file, below the top of the tree. */
const char *source_index_file(const struct source_index *s, uint32_t file);
size_t source_index_files(const struct source_index *s);
size_t source_index_functions(const struct source_index *s);
/** Returns the words, and how many there are. */
const struct source_word *source_index_words(const struct source_index *s, size_t *n);
/** Returns the first definition of the name, and how many follow one another, in no order; NULL: none. */
const struct source_function *source_index_find(const struct source_index *s, const char *name, size_t *n);

/** For tests: takes the bytes of a file (heap), which it owns. Returns 0, or -EBADMSG. */
int source_index_parse(struct source_index **out, void *bytes, size_t len);

#endif
