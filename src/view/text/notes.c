/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/text/notes.h"

#include <stdarg.h>

#include "view/text/text.h"

void notes_add(struct buf *notes, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(notes, fmt, ap);
    va_end(ap);
    buf_addch(notes, '\n');
}

void notes_add_count(struct buf *notes, uint64_t n, const char *words)
{
    if (!n)
        return;
    text_add_words(notes, n, words);
    buf_addch(notes, '\n');
}

void notes_add_cut(struct buf *notes, uint64_t shown, uint64_t all)
{
    if (shown >= all)
        return;
    text_add_number(notes, shown, NULL);
    buf_addstr(notes, " of ");
    text_add_number(notes, all, "row");
    buf_addstr(notes, " are shown; --top 0 shows all\n");
}
