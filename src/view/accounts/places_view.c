/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/accounts/places_view.h"

#include <stdlib.h>
#include <string.h>

#include "view/formats/json.h"
#include "view/table/table_view.h"
#include "view/text/notes.h"

enum { C_PLACES, C_COPIES, C_CLASS, C_NAME, C_FUNCTION, C_PLACE, C_MODULE, COLUMNS };
static const struct table_column columns[COLUMNS] = {
    [C_PLACES] = {"sites", TABLE_COUNT, TABLE_WHOLE},
    [C_COPIES] = {"copies", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 2},
    [C_CLASS] = {"class", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [C_NAME] = {"name", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [C_FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .shrinkable = true},
    [C_PLACE] = {"place", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .shrinkable = true},
    [C_MODULE] = {"module", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .shrinkable = true,
                  .drop_rank = 2},
};

static const char *text_of(const struct alloc_texts *texts, uint32_t text)
{
    const char *found = alloc_texts_get(texts, text);
    return found ? found : "";
}

/* By file and line; places without either come last. */
static int compare(const void *a, const void *b, void *arg)
{
    const struct account_key *x = &((const struct account_row *)a)->key,
                             *y = &((const struct account_row *)b)->key;
    const uint32_t pairs[][2] = {
        {x->file, y->file}, {x->class, y->class}, {x->name, y->name}, {x->function, y->function}};
    if (!x->file != !y->file)
        return x->file ? -1 : 1;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        int order = strcmp(text_of(arg, pairs[i][0]), text_of(arg, pairs[i][1]));
        if (!order && !i)
            order = (x->line > y->line) - (x->line < y->line);
        if (order)
            return order;
    }
    return 0;
}

static void put_row(struct table *t, const struct account_row *r, const struct alloc_texts *texts)
{
    table_row(t);
    table_whole(t, C_PLACES, r->of[ACCOUNT_AFTER].places);
    table_whole(t, C_COPIES, r->copies);
    account_names_put(t, C_CLASS, &r->key, texts);
    table_text(t, C_MODULE, alloc_texts_get(texts, r->key.module));
}

static uint64_t copies_of(const struct account_rows *rows)
{
    uint64_t copies = 0;
    vec_each (const struct account_row, r, rows)
        copies += r->copies;
    return copies;
}

/* "server: 214 sites, in 311 copies" */
static void write_heading(const struct accounts_view *o, const char *source, struct sink *out,
                          const struct accounts *a, const struct account_rows *fit)
{
    struct buf b = BUF_INIT;
    text_add_name(&b, &o->style, source);
    buf_addstr(&b, ": ");
    text_add_number(&b, a->rows.len, "site");
    buf_addstr(&b, ", in ");
    text_add_words(&b, copies_of(&a->rows), "cop{y|ies}");
    buf_addstr(&b, "\n");
    if (o->query) {
        buf_addstr(&b, "where ");
        text_add_name(&b, &o->style, query_text(o->query));
        buf_addstr(&b, ": ");
        text_add_number(&b, fit->len, "site");
        buf_addstr(&b, "\n");
    }
    sink_printf(out, "%s\n", buf_str(&b));
    buf_release(&b);
}

static void write_json(const struct accounts_view *o, const char *source, struct sink *out,
                       const struct table *t, const struct accounts *a, size_t all)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-tags-places");
    json_whole(&j, "version", t->version);
    json_text(&j, "source", source);
    json_text(&j, "filter", o->query ? query_text(o->query) : NULL);
    json_text(&j, "group", o->group);
    json_whole(&j, "sites", a->rows.len);
    json_whole(&j, "not_understood", a->processes.at[0].losses[ACCOUNT_LOST_RECORDS]);
    json_whole(&j, "rows_in_all", all);
    table_view_json_rows(&j, "rows", t);
    json_close(&j, '}');
}

/* Adds notes about missing data, with the reasons. */
static void note_missing(struct buf *notes, const struct accounts_view *o, const struct accounts *a,
                         size_t fit, size_t shown, size_t all)
{
    uint64_t not_understood = a->processes.at[0].losses[ACCOUNT_LOST_RECORDS];
    size_t unknown = 0;
    vec_each (const struct account_row, r, &a->rows)
        unknown += !r->key.file;
    if (o->query && !fit)
        notes_add(notes, "no site matches %s", query_text(o->query));
    if (o->format != ACCOUNTS_JSON)
        notes_add_cut(notes, shown, all);
    notes_add_count(notes, unknown,
                    "site{s} {has|have} neither file nor line: {it has|they have} no debug information (cc "
                    "-g), or it was stripped");
    notes_add_count(notes, not_understood,
                    "part{s} of its tags {is|are} invalid: damaged, or of another version of <allium/tag.h>");
}

void places_view_write(struct sink *out, const struct accounts_view *o, const char *source,
                       const struct accounts *a, struct alloc_texts *texts, struct buf *notes)
{
    static const uint64_t of_groups[] = {
        [ACCOUNT_BY_PLACE] = 1 << C_PLACES,
        [ACCOUNT_BY_FUNCTION] = ~(1ull << C_PLACES | 1 << C_COPIES | 1 << C_FUNCTION),
        [ACCOUNT_BY_FILE] = ~(1ull << C_PLACES | 1 << C_COPIES | 1 << C_PLACE),
        [ACCOUNT_BY_DIRECTORY] = ~(1ull << C_PLACES | 1 << C_COPIES | 1 << C_PLACE),
        [ACCOUNT_BY_MODULE] = ~(1ull << C_PLACES | 1 << C_COPIES | 1 << C_MODULE),
        [ACCOUNT_BY_CLASS] = ~(1ull << C_PLACES | 1 << C_COPIES | 1 << C_CLASS),
    };
    struct account_rows places = {0}, rows = {0};
    account_rows_join(&places, NULL, a, 0);
    if (o->query)
        account_rows_keep(&places, o->query, texts);
    account_rows_group(&rows, &places, o->shape.group, texts);
    if (rows.len)
        qsort_r(rows.at, rows.len, sizeof(*rows.at), compare, texts);
    struct table *t = table_new("tags-places", 2, columns, COLUMNS);
    t->hidden = of_groups[o->shape.group];
    vec_each (const struct account_row, r, &rows)
        if (!o->shape.top || table_rows(t) < o->shape.top)
            put_row(t, r, texts);
    if (o->format == ACCOUNTS_JSON) {
        write_json(o, source, out, t, a, rows.len);
    } else {
        write_heading(o, source, out, a, &places);
        if (table_rows(t))
            table_view_text(out, t, &o->style);
    }
    note_missing(notes, o, a, places.len, table_rows(t), rows.len);
    table_free(t);
    vec_release(&places);
    vec_release(&rows);
}
