/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_SINK_H
#define VIEW_SINK_H

/*
 * The output of a view: a stream or a buffer. The first error is stored, and later output is dropped. So
 * views need not check; the creator of the sink checks once at the end.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing; the stream or buffer belongs to the caller.
 */

#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

struct sink {
    FILE *file; /* one of the two */
    struct buf *buf;
    int error; /* 0 or the first -errno */
};

static inline struct sink sink_to_file(FILE *file)
{
    return (struct sink){.file = file};
}
static inline struct sink sink_to_buf(struct buf *buf)
{
    return (struct sink){.buf = buf};
}

void sink_write(struct sink *s, const void *bytes, size_t len);
void sink_text(struct sink *s, const char *text);
void sink_char(struct sink *s, char c);
void sink_printf(struct sink *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Writes the same character `n` times. */
void sink_repeat(struct sink *s, char c, size_t times);
/** Flushes a stream. Returns 0, or the first -errno: -EPIPE, -ENOSPC, ... */
int sink_finish(struct sink *s);

#endif
