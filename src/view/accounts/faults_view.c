/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/accounts/faults_view.h"

#include "base/units.h"
#include "view/formats/json.h"
#include "view/table/table_view.h"
#include "view/text/notes.h"

enum {
    C_FAULTS,
    C_MINOR,
    C_MAJOR,
    C_SHARED,
    C_LIVE,
    C_OBJECTS,
    C_PLACES,
    C_CLASS,
    C_NAME,
    C_FUNCTION,
    C_PLACE,
    C_MODULE,
    COLUMNS
};
static const struct table_column columns[COLUMNS] = {
    [C_FAULTS] = {"faults", TABLE_COUNT, TABLE_WHOLE},
    [C_MINOR] = {"minor", TABLE_COUNT, TABLE_WHOLE},
    [C_MAJOR] = {"major", TABLE_COUNT, TABLE_WHOLE},
    [C_SHARED] = {"shared", TABLE_COUNT, TABLE_WHOLE},
    [C_LIVE] = {"live", TABLE_BYTES, TABLE_SIGNED},
    [C_OBJECTS] = {"live_objects", TABLE_PLAIN, TABLE_SIGNED},
    [C_PLACES] = {"sites", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 1},
    [C_CLASS] = {"class", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [C_NAME] = {"name", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [C_FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [C_PLACE] = {"place", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [C_MODULE] = {"module", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .drop_rank = 2},
};
#define NAMES                                                                                                \
    (1u << C_PLACES | 1u << C_CLASS | 1u << C_NAME | 1u << C_FUNCTION | 1u << C_PLACE | 1u << C_MODULE)

static void put_row(struct table *t, const struct account_row *r, const struct alloc_texts *texts)
{
    const struct account_sum *sum = &r->of[ACCOUNT_AFTER];
    table_row(t);
    table_whole(t, C_FAULTS, account_faults(&r->of[ACCOUNT_AFTER]));
    table_whole(t, C_MINOR, sum->faults[ACCOUNT_MINOR]);
    table_whole(t, C_MAJOR, sum->faults[ACCOUNT_MAJOR]);
    table_whole(t, C_SHARED, sum->faults[ACCOUNT_SHARED]);
    table_signed(t, C_LIVE, account_live_bytes(sum));
    table_signed(t, C_OBJECTS, account_live_objects(sum));
    table_whole(t, C_PLACES, sum->places);
    account_names_put(t, C_CLASS, &r->key, texts);
    table_text(t, C_MODULE, alloc_texts_get(texts, r->key.module));
}

static struct table *make_table(const struct faults_view *o, const struct alloc_texts *texts)
{
    static const unsigned named[] = {
        [ACCOUNT_BY_PLACE] = NAMES & ~(1u << C_PLACES),
        [ACCOUNT_BY_FUNCTION] = 1u << C_PLACES | 1u << C_FUNCTION,
        [ACCOUNT_BY_FILE] = 1u << C_PLACES | 1u << C_PLACE,
        [ACCOUNT_BY_DIRECTORY] = 1u << C_PLACES | 1u << C_PLACE,
        [ACCOUNT_BY_MODULE] = 1u << C_PLACES | 1u << C_MODULE,
        [ACCOUNT_BY_CLASS] = 1u << C_PLACES | 1u << C_CLASS,
    };
    struct table *t = table_new("faults", 2, columns, COLUMNS);
    t->hidden = NAMES & ~named[o->form->shape.group];
    vec_each (const struct account_row, r, o->rows)
        put_row(t, r, texts);
    table_sort(t, C_FAULTS, TABLE_MOST_FIRST);
    if (o->form->shape.top && table_rows(t) > o->form->shape.top)
        table_cut(t, o->form->shape.top);
    return t;
}

/* "server (pid 4711): 612 page faults of its objects in 10.0 s, 12 major" */
static void write_heading(const struct faults_view *o, struct sink *out)
{
    char took[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    text_add_name(&b, &o->form->style, o->process->comm);
    buf_printf(&b, " (pid %d): ", (int)o->process->pid);
    text_add_number(&b, o->total->faults[ACCOUNT_MINOR] + o->total->faults[ACCOUNT_MAJOR], "page fault");
    buf_printf(&b, " of its objects in %s, ", units_format_duration(took, o->seconds * 1e9));
    text_add_number(&b, o->total->faults[ACCOUNT_MAJOR], NULL);
    buf_addstr(&b, " major\n");
    if (o->form->query) {
        buf_addstr(&b, "where ");
        text_add_name(&b, &o->form->style, query_text(o->form->query));
        buf_addstr(&b, "\n");
    }
    sink_printf(out, "%s\n", buf_str(&b));
    buf_release(&b);
}

static void write_json(const struct faults_view *o, struct sink *out, const struct table *t)
{
    struct json j = {.out = out};
    struct buf schema = BUF_INIT;
    buf_printf(&schema, "allium-%s-faults", o->form->shape.schema);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", buf_str(&schema));
    buf_release(&schema);
    json_whole(&j, "version", t->version);
    json_whole(&j, "pid", (uint64_t)o->process->pid);
    json_text(&j, "program", o->process->comm);
    json_real(&j, "seconds", o->seconds);
    json_text(&j, "filter", o->form->query ? query_text(o->form->query) : NULL);
    json_text(&j, "group", o->form->group);
    json_whole(&j, "minor", o->total->faults[ACCOUNT_MINOR]);
    json_whole(&j, "major", o->total->faults[ACCOUNT_MAJOR]);
    json_whole(&j, "shared", o->total->faults[ACCOUNT_SHARED]);
    json_whole(&j, "elsewhere", o->rest->elsewhere);
    json_whole(&j, "of_none", o->rest->none);
    json_whole(&j, "ended", o->rest->ended);
    json_whole(&j, "lost", o->rest->lost);
    json_flag(&j, "system_calls", !o->user_alone);
    json_whole(&j, "rows_in_all", o->rows->len);
    table_view_json_rows(&j, "rows", t);
    json_close(&j, '}');
}

static void note_rest(struct buf *notes, const struct faults_view *o, uint32_t shown)
{
    if (o->form->format != ACCOUNTS_JSON)
        notes_add_cut(notes, shown, o->rows->len);
    if (o->form->query && !o->fits)
        notes_add(notes, "no site matches %s", query_text(o->form->query));
    notes_add_count(notes, o->rest->elsewhere,
                    "other page fault{s} {was|were} in memory without objects: stacks, files and so on");
    notes_add_count(
        notes, o->rest->none,
        "page fault{s} {was|were} in objects that had been freed when {it was|they were} looked up");
    notes_add_count(notes, o->rest->ended,
                    "page fault{s} could not be assigned to {an object|objects}: the process had ended");
    notes_add_count(notes, o->rest->lost,
                    "page fault{s} {was|were} lost: they occurred faster than allium read them");
    if (o->user_alone)
        notes_add(notes, "page faults in system calls were not counted: this requires CAP_PERFMON, or "
                         "kernel.perf_event_paranoid of at most 1");
}

void faults_view_write(struct sink *out, const struct faults_view *o, const struct alloc_texts *texts,
                       struct buf *notes)
{
    struct table *t = make_table(o, texts);
    if (o->form->format == ACCOUNTS_JSON) {
        write_json(o, out, t);
    } else {
        write_heading(o, out);
        if (table_rows(t))
            table_view_text(out, t, &o->form->style);
    }
    note_rest(notes, o, table_rows(t));
    table_free(t);
}
