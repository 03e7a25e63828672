/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/folded.h"

#include <assert.h>
#include <string.h>

#include "view/text/text.h"

struct line {
    char *stack;
    double value;
};
struct lines VEC(struct line);

void folded_add_frame(struct buf *b, const char *name)
{
    static const struct text_style utf8 = {.utf8 = true};
    size_t from = b->len;
    buf_addstr(b, ""); /* makes the buffer non-NULL if the name is empty */
    text_add_name(b, &utf8, name);
    for (char *c = b->data + from; *c; c++)
        if (*c == ';')
            *c = ':';
}

void folded_add_stack(struct buf *b, const struct profile *p, struct frames *frames, uint32_t stack)
{
    char scratch[FRAME_NAME_BYTES];
    frames_of(frames, p, stack);
    for (size_t i = frames->len; i-- > 0;) {
        folded_add_frame(b, frame_function(p, &frames->at[i], scratch));
        if (i)
            buf_addch(b, ';');
    }
}

static int by_stack(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->stack, ((const struct line *)b)->stack);
}

void folded_write(struct sink *out, const struct rollup *r, enum rollup_sort metric)
{
    struct lines lines = {0};
    struct map index = {0};
    struct frames frames = {0};
    assert(r->options.group == ROLLUP_BY_STACK && metric != ROLLUP_SORT_AGE);
    vec_each (const struct rollup_row, row, &r->rows) {
        struct buf stack = BUF_INIT;
        bool added;
        folded_add_stack(&stack, r->profile, &frames, row->index);
        size_t at = map_put(&index, buf_str(&stack), stack.len, lines.len, &added);
        if (added)
            vec_push(&lines)->stack = buf_detach(&stack);
        lines.at[at].value += rollup_sort_value(metric, &row->self);
        buf_release(&stack);
    }
    if (lines.len)
        qsort(lines.at, lines.len, sizeof(*lines.at), by_stack);
    vec_each (struct line, line, &lines) {
        if (line->value >= 0.5)
            sink_printf(out, "%s %.0f\n", line->stack, line->value);
        free(line->stack);
    }
    vec_release(&lines);
    vec_release(&frames);
    map_release(&index);
}
