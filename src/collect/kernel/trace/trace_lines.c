/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/trace_lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define READ_BYTES (64u << 10)

struct trace_lines {
    struct packed_input *from;
    char *bytes; /* READ_BYTES behind what is left of a line */
    size_t begin, end;
    bool over;
};

struct trace_lines *trace_lines_new(struct packed_input *from)
{
    struct trace_lines *l = mem_alloc(sizeof(*l));
    *l = (struct trace_lines){.from = from, .bytes = mem_alloc(TRACE_LINE_MAX + READ_BYTES)};
    return l;
}

void trace_lines_free(struct trace_lines *l)
{
    if (!l)
        return;
    free(l->bytes);
    free(l);
}

/* Moves what is left to the front, and reads more behind it. */
static int fill(struct trace_lines *l, struct error *e)
{
    size_t taken;
    l->end -= l->begin;
    memmove(l->bytes, l->bytes + l->begin, l->end);
    l->begin = 0;
    int bad = packed_input_read(l->from, l->bytes + l->end, READ_BYTES, &taken, e);
    l->over = bad || !taken;
    l->end += taken;
    return bad;
}

int trace_lines_next(struct trace_lines *l, const char **line, size_t *len, struct error *e)
{
    size_t searched = 0;
    for (;;) {
        const char *from = l->bytes + l->begin;
        const char *newline = memchr(from + searched, '\n', l->end - l->begin - searched);
        searched = l->end - l->begin;
        if (newline || (searched && (l->over || searched >= TRACE_LINE_MAX))) {
            *line = from;
            *len = newline ? (size_t)(newline - from) : searched;
            l->begin += *len + (newline != NULL);
            return 1;
        }
        if (l->over)
            return 0;
        int bad = fill(l, e);
        if (bad)
            return bad;
    }
}
