/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table/table_folded.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "view/formats/folded.h"

/* Appends a frame for flame graphs. A frame of the kernel becomes "function_[k]", without its offset. */
static void add_folded(struct buf *line, const char *from, size_t len, bool kernel)
{
    const char *place = kernel ? memchr(from, '+', len) : NULL;
    if (kernel && !place)
        place = memmem(from, len, " (", 2); /* an inlined frame, with its line */
    if (place)
        len = (size_t)(place - from);
    char *name = mem_strndup(from, len);
    folded_add_frame(line, name);
    free(name);
    buf_addstr(line, kernel ? "_[k];" : ";");
}

/*
 * Appends the lines of a text, last line first. Frames that are marked as doubtful are left out: they would become
 * meaningless roots.
 */
static void add_folded_lines(struct buf *line, const char *text, bool kernel)
{
    bool cut = false;
    for (const char *end = text + strlen(text); end > text;) {
        const char *from = end - 1;
        while (from > text && from[-1] != '\n')
            from--;
        if (strncmp(from, "? ", 2))
            add_folded(line, from, strcspn(from, "\n"), kernel);
        else if (!cut)
            buf_addstr(line, "[no frame pointer];");
        cut = cut || !strncmp(from, "? ", 2);
        end = from;
    }
}

void table_folded_write(struct sink *out, const struct table *t, uint32_t weight)
{
    for (uint32_t row = 0; row < table_rows(t); row++) {
        struct buf line = BUF_INIT;
        for (uint32_t i = t->n_columns; i-- > 0;) {
            const struct table_column *c = &t->columns[i];
            const struct table_value *v = table_at(t, row, i);
            if (v->known && !table_hides(t, i) && c->type == TABLE_LINES && !c->report_text && !c->fields)
                add_folded_lines(&line, v->text, !strcmp(c->name, "kernel_stack"));
        }
        double value = table_number(t, row, weight);
        if (line.len && value > 0)
            sink_printf(out, "%.*s %.0f\n", (int)line.len - 1, buf_str(&line), value);
        buf_release(&line);
    }
}
