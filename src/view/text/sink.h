/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_SINK_H
#define VIEW_SINK_H

/*
 * Where a view writes: a stream or a buffer. The first error sticks, and what comes after it is dropped: views need not
 * look, whoever made the sink asks once at the end.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing; the stream or buffer is the caller's.
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
/** The same character so many times. */
void sink_repeat(struct sink *s, char c, size_t times);
/** Flushes a stream. 0, or the first -errno: -EPIPE, -ENOSPC, ... */
int sink_finish(struct sink *s);

#endif
