/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_CURSOR_H
#define COLLECT_TRACE_CURSOR_H

/*
 * A place in a binary file, or in a part of it that was unpacked. Nothing beyond its end is read.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct trace_cursor {
    int fd;                /* of the file; used if `memory` is NULL */
    const uint8_t *memory; /* of `end` bytes */
    uint64_t at, end;
};

/** Takes bytes. Returns 0, -EBADMSG: there are not so many; or -errno of a read. */
int trace_cursor_take(struct trace_cursor *c, void *to, size_t bytes);
/** Takes a number of 4 or 8 bytes, little-endian. Returns as above. */
int trace_cursor_u32(struct trace_cursor *c, uint32_t *out);
int trace_cursor_u64(struct trace_cursor *c, uint64_t *out);
/** Takes a text up to its NUL, which is at most `max` bytes away, into `out`, which is emptied. Returns as above. */
int trace_cursor_text(struct trace_cursor *c, size_t max, struct buf *out);
/** Takes bytes into `out`, which is emptied; more than `max` count as too many. Returns as above. */
int trace_cursor_bytes(struct trace_cursor *c, uint64_t bytes, size_t max, struct buf *out);
/** Passes over bytes. Returns as above. */
int trace_cursor_skip(struct trace_cursor *c, uint64_t bytes);

#endif
