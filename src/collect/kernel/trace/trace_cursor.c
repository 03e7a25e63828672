/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/trace_cursor.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int trace_cursor_take(struct trace_cursor *c, void *to, size_t bytes)
{
    if (c->at > c->end || bytes > c->end - c->at)
        return -EBADMSG;
    if (c->memory)
        memcpy(to, c->memory + c->at, bytes);
    for (size_t n = c->memory ? bytes : 0; n < bytes;) {
        ssize_t got = pread(c->fd, (char *)to + n, bytes - n, (off_t)(c->at + n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? -errno : -EBADMSG;
        n += (size_t)got;
    }
    c->at += bytes;
    return 0;
}

int trace_cursor_u32(struct trace_cursor *c, uint32_t *out)
{
    *out = 0;
    return trace_cursor_take(c, out, sizeof(*out));
}

int trace_cursor_u64(struct trace_cursor *c, uint64_t *out)
{
    *out = 0;
    return trace_cursor_take(c, out, sizeof(*out));
}

int trace_cursor_text(struct trace_cursor *c, size_t max, struct buf *out)
{
    buf_reset(out);
    for (size_t n = 0; n < max; n++) {
        char byte;
        int bad = trace_cursor_take(c, &byte, 1);
        if (bad || !byte)
            return bad;
        buf_addch(out, byte);
    }
    return -EBADMSG;
}

int trace_cursor_bytes(struct trace_cursor *c, uint64_t bytes, size_t max, struct buf *out)
{
    buf_reset(out);
    if (c->at > c->end || bytes > c->end - c->at || bytes > max)
        return -EBADMSG;
    buf_reserve(out, bytes + 1);
    int bad = trace_cursor_take(c, out->data, bytes);
    out->len = bad ? 0 : bytes;
    out->data[out->len] = '\0';
    return bad;
}

int trace_cursor_skip(struct trace_cursor *c, uint64_t bytes)
{
    if (c->at > c->end || bytes > c->end - c->at)
        return -EBADMSG;
    c->at += bytes;
    return 0;
}
