/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_CHUNKS_H
#define COLLECT_TRACE_CHUNKS_H

/*
 * The compressed parts of version 7 of trace-cmd's files.
 *
 * Runs in: the tool. Threads: any. Owns: nothing.
 */

#include <stdint.h>

#include "base/buf.h"
#include "collect/kernel/trace/trace_cursor.h"

enum trace_packing { TRACE_NOT_PACKED, TRACE_PACKED_ZLIB, TRACE_PACKED_ZSTD };

/** "none", "zlib", "zstd". Returns 0, or -ENOTSUP. */
int trace_packing_parse(enum trace_packing *out, const char *name);
/** Unpacks a chunk: its size, the size of what is in it, and the data. Returns 0, or -EBADMSG or another -errno. */
int trace_chunk_unpack(struct trace_cursor *c, enum trace_packing packing, struct buf *out);
/** Unpacks the number of chunks and the chunks, and appends them to a file: from `at` up to `end`. Returns as above. */
int trace_chunks_unpack(struct trace_cursor *c, enum trace_packing packing, int fd, uint64_t *at,
                        uint64_t *end);

#endif
