/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_INDEX_FILE_H
#define SYMBOL_INDEX_FILE_H

/* The parts of an index in memory and in its file. For source_index.c and index_*.c only. */

#include "base/buf.h"
#include "symbol/tree/source_index.h"

#define INDEX_MAGIC     "allium source index 1\n"
#define INDEX_TEXTS_MAX (UINT32_MAX / 4)

struct index_header {
    char magic[24];
    uint64_t identity; /* of the source: tree_files_identity() */
    uint64_t checksum; /* of what follows the header */
    uint32_t functions, files, words, texts_bytes;
    uint32_t source, version; /* texts */
};

/* Behind the header: functions, sorted by their hashes; files, each a text; words; texts, which begin with "". */

/** Returns the hash of a name, of a checksum, and so on: FNV-1a, begun with INDEX_HASH. */
#define INDEX_HASH UINT64_C(0xcbf29ce484222325)
uint64_t index_hash(uint64_t hash, const void *bytes, size_t len);

/** Returns whether the index is of this source, in this state. */
bool source_index_is_of(const struct source_index *s, const char *source, uint64_t identity);
/** Appends the whole index of a source to `out`. Returns 0, or -errno with a line. */
int index_build(struct buf *out, const char *source, uint64_t identity, struct error *e);

#endif
