/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_BUF_H
#define BASE_BUF_H

/*
 * A growable byte string, always NUL-terminated. Not for the target.
 *
 * Runs in: the tool.
 * Owns: `data` (heap), until buf_release(). If an allocation fails, the tool exits (base/mem.h).
 */

#include <stdarg.h>
#include <stddef.h>

struct buf {
    char *data; /* NUL-terminated once anything was added, else NULL */
    size_t len; /* bytes, without the NUL */
    size_t cap;
};

#define BUF_INIT                                                                                             \
    {                                                                                                        \
        0                                                                                                    \
    }

void buf_release(struct buf *b);
void buf_reset(struct buf *b);
void buf_reserve(struct buf *b, size_t extra_bytes);
void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_addstr(struct buf *b, const char *text);
void buf_addch(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/** Returns the text, which the buffer owns; "" if nothing was added. */
const char *buf_str(const struct buf *b);
/** Hands the heap string over to the caller, who frees it; the buffer is empty afterwards. Never NULL. */
char *buf_detach(struct buf *b);

#endif
