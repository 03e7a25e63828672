/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/state_rows.h"

#include <string.h>
#include <unistd.h>

#include "model/table/table.h"
#include "store/profile_load.h"

#define ROWS_NAME "sys_state"

enum column { PATH, TEXT, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    [PATH] = {"path", TABLE_PLAIN, TABLE_TEXT},
    [TEXT] = {"text", TABLE_PLAIN, TABLE_LINES},
};

static bool is_same(const struct kernel_text *t, const struct kernel_state *before)
{
    const char *text = kernel_state_text(before, t->path);
    return text && !strcmp(text, buf_str(&t->text));
}

/* Each moment has a row, as its time is known by that alone. */
int state_rows_put(struct recording *r, const struct kernel_state *s, const struct kernel_state *before,
                   uint64_t taken_ns, struct error *e)
{
    struct table *t = table_new("sys-state", 1, columns, COLUMNS);
    vec_each (const struct kernel_text, text, &s->texts) {
        const bool is_last = text + 1 == s->texts.at + s->texts.len;
        if (is_same(text, before) && (!is_last || table_rows(t)))
            continue;
        table_row(t);
        table_text(t, PATH, text->path);
        table_text(t, TEXT, buf_str(&text->text));
    }
    int bad = recording_put_rows(r, ROWS_NAME, t, taken_ns, e);
    table_free(t);
    return bad;
}

struct load {
    struct state_rows *out;
    struct table *rows;
};

static void take_moment(void *arg, uint64_t time_ns)
{
    const struct load *l = arg;
    struct state_moment *m = vec_push(&l->out->moments);
    *m = (struct state_moment){.taken_ns = time_ns};
    for (uint32_t i = 0; i < table_rows(l->rows); i++) {
        const struct table_value *path = table_at(l->rows, i, PATH), *text = table_at(l->rows, i, TEXT);
        if (path->known && text->known)
            kernel_state_add(&m->state, path->text, text->text, strlen(text->text));
    }
    table_clear(l->rows);
}

int state_rows_load(struct state_rows *out, const char *path, struct error *e)
{
    struct load l = {out, table_new("sys-state", 1, columns, COLUMNS)};
    struct recording_summary summary;
    int64_t page_bytes = sysconf(_SC_PAGESIZE);
    *out = (struct state_rows){.moments = {0}};
    int bad = recording_load_rows(path, ROWS_NAME, l.rows, take_moment, &l, e);
    if (!bad && !recording_summarize(&summary, path, e)) {
        recording_number(&summary, RECORDING_KERNEL_PAGE, &page_bytes);
        recording_summary_release(&summary);
    }
    out->page_bytes = (uint64_t)page_bytes;
    table_free(l.rows);
    return bad;
}

const char *state_rows_text(const struct state_rows *s, size_t moment, const char *path)
{
    const char *text = NULL;
    for (size_t i = 0; i <= moment && i < s->moments.len; i++) {
        const char *newer = kernel_state_text(&s->moments.at[i].state, path);
        text = newer ? newer : text;
    }
    return text;
}

void state_rows_release(struct state_rows *s)
{
    vec_each (struct state_moment, m, &s->moments)
        kernel_state_release(&m->state);
    vec_release(&s->moments);
}
