/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers that stacks have in the events of a trace, which are those of the image's ledger. They are rows of the
 * table "trace_stack" (table_rows.h): only recordings beside such a trace have it.
 */
#include <errno.h>

#include "store/recording_reader.h"
#include "store/recording_writer.h"

#define NAME "trace_stack"

static const struct table_column columns[] = {
    {.name = "image", .type = TABLE_WHOLE},
    {.name = "number", .type = TABLE_WHOLE},
    {.name = "stack", .type = TABLE_WHOLE},
};

int writer_put_stack_numbers(struct intern *n, struct error *e)
{
    if (!n->p->stack_numbers.len)
        return 0;
    struct table *t = table_new(NAME, 1, columns, sizeof(columns) / sizeof(*columns));
    vec_each (const struct profile_stack_number, k, &n->p->stack_numbers) {
        table_row(t);
        table_whole(t, 0, n->image);
        table_whole(t, 1, k->number);
        table_whole(t, 2, intern_stack(n, k->stack));
    }
    const int bad = recording_put_rows(n->r, NAME, t, n->p->taken_ns, e);
    table_free(t);
    return bad;
}

int load_stack_numbers(struct loader *l, struct error *e)
{
    struct sql s;
    int64_t has = 0;
    bool fits = true;
    int rc = sql_select_number(
        l->r->db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '" NAME "'", &has);
    if (rc || !has)
        return rc ? sql_error(e, l->r->db, rc, l->r->shown) : 0;
    rc = sql_prepare(&s, l->r->db, "SELECT image, number, stack FROM " NAME " ORDER BY rowid");
    while (!rc && fits && sql_row(&s)) {
        struct profile_stack_number it = {.image = sql_get_index(&s, l->rows.images)};
        it.number = sql_get_index(&s, PROFILE_NONE);
        const uint32_t row = sql_get_index(&s, l->rows.stacks);
        if (s.bad)
            break;
        it.image = l->images.at[it.image].index;
        if (it.image == PROFILE_NONE)
            continue;
        fits = load_use_stack(l, row, &it.stack);
        *vec_push(&l->p->stack_numbers) = it;
    }
    if (rc || s.rc)
        rc = sql_error(e, l->r->db, rc ? rc : s.rc, l->r->shown);
    else if (s.bad)
        rc =
            error_set(e, EBADMSG, "%s is damaged (table " NAME "); nothing can be read from it, record again",
                      l->r->shown);
    else if (!fits)
        rc = load_refuse_frames(l, e);
    sql_finalize(&s);
    return rc;
}
