/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/text/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static void fail(struct sink *s)
{
    if (!s->error)
        s->error = errno ? -errno : -EIO;
}

void sink_write(struct sink *s, const void *bytes, size_t len)
{
    if (s->error || !len)
        return;
    if (s->buf) {
        buf_add(s->buf, bytes, len);
        return;
    }
    errno = 0;
    if (fwrite(bytes, 1, len, s->file) != len)
        fail(s);
}

void sink_text(struct sink *s, const char *text)
{
    sink_write(s, text, strlen(text));
}

void sink_char(struct sink *s, char c)
{
    sink_write(s, &c, 1);
}

void sink_printf(struct sink *s, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    sink_write(s, buf_str(&text), text.len);
    buf_release(&text);
}

void sink_repeat(struct sink *s, char c, size_t times)
{
    while (times--)
        sink_char(s, c);
}

int sink_finish(struct sink *s)
{
    errno = 0;
    /* Errors of other writers to the stream count, too: it keeps an error flag, but no reason. */
    if (!s->error && s->file && (fflush(s->file) || ferror(s->file)))
        fail(s);
    return s->error;
}
