/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/buf.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_release(struct buf *b)
{
    free(b->data);
    *b = (struct buf)BUF_INIT;
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

void buf_reserve(struct buf *b, size_t extra_bytes)
{
    size_t need = b->len + extra_bytes + 1;
    if (need <= b->cap)
        return;
    size_t cap = b->cap ? b->cap * 2 : 64;
    while (cap < need)
        cap *= 2;
    b->data = mem_resize(b->data, cap);
    b->cap = cap;
}

void buf_add(struct buf *b, const void *bytes, size_t len)
{
    buf_reserve(b, len);
    if (len)
        memcpy(b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_addstr(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

void buf_addch(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len < 0)
        return;
    buf_reserve(b, (size_t)len);
    vsnprintf(b->data + b->len, (size_t)len + 1, fmt, ap);
    b->len += (size_t)len;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

const char *buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *buf_detach(struct buf *b)
{
    buf_reserve(b, 0);
    b->data[b->len] = '\0';
    char *text = b->data;
    *b = (struct buf)BUF_INIT;
    return text;
}
