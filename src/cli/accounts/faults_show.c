/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/faults_show.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "cli/pager.h"
#include "cli/terminal.h"
#include "collect/accounts/object_faults.h"
#include "model/table/table.h"
#include "view/formats/json.h"
#include "view/table/table_view.h"

#define STEP_MS 2

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
    [C_PLACES] = {"places", TABLE_COUNT, TABLE_WHOLE, .drop = 1},
    [C_CLASS] = {"class", TABLE_PLAIN, TABLE_TEXT, .rare = true},
    [C_NAME] = {"name", TABLE_PLAIN, TABLE_TEXT, .rare = true},
    [C_FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT, .rare = true},
    [C_PLACE] = {"place", TABLE_PLAIN, TABLE_TEXT, .rare = true},
    [C_MODULE] = {"module", TABLE_PLAIN, TABLE_TEXT, .rare = true, .drop = 2},
};
#define NAMES                                                                                                \
    (1u << C_PLACES | 1u << C_CLASS | 1u << C_NAME | 1u << C_FUNCTION | 1u << C_PLACE | 1u << C_MODULE)

/* All that was counted. */
struct watched {
    const struct faults_show *o;
    struct alloc_texts *texts;
    struct accounts accounts;
    struct account_rows places, rows; /* that have faults, and fit */
    struct account_sum total;         /* of all places */
    struct object_faults_rest rest;
    double seconds;
    const char *schema; /* "tags", "sites" */
    bool user_alone;
};

/* ---- counting ---- */

/* What was counted so far is shown when it is told to end. */
static void count(struct watched *w, struct object_faults *f)
{
    sigset_t ends, before;
    uint64_t began = clock_ns(CLOCK_MONOTONIC);
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, &before);
    while (clock_ns(CLOCK_MONOTONIC) - began < w->o->duration_ns && !object_faults_step(f, STEP_MS))
        if (sigtimedwait(&ends, NULL, &(struct timespec){0}) > 0)
            break;
    w->seconds = (double)(clock_ns(CLOCK_MONOTONIC) - began) / 1e9;
    object_faults_finish(f);
    sigprocmask(SIG_SETMASK, &before, NULL);
    w->rest = object_faults_rest(f);
    w->user_alone = object_faults_user_alone(f);
}

static uint64_t faults_of(const struct account_row *r)
{
    return r->of[ACCOUNT_AFTER].faults[ACCOUNT_MINOR] + r->of[ACCOUNT_AFTER].faults[ACCOUNT_MAJOR];
}

static void choose(struct watched *w)
{
    struct account_rows all = {0};
    size_t kept = 0;
    account_rows_join(&w->places, NULL, &w->accounts, false);
    w->total = account_rows_total(&w->places, ACCOUNT_AFTER);
    if (w->o->query)
        account_rows_keep(&w->places, w->o->query, w->texts);
    account_rows_group(&all, &w->places, w->o->group, w->texts);
    vec_each (const struct account_row, r, &all)
        if (faults_of(r))
            all.at[kept++] = *r;
    all.len = kept;
    w->rows = all;
}

static int read_all(struct watched *w, const struct accounts_kind *kind, struct symbols *symbols,
                    struct error *e)
{
    struct object_faults *f;
    struct object_lookup_where where;
    int bad = kind->find_objects(&where, w->o->pid, e);
    bad = bad ? bad : object_faults_open(&f, w->o->pid, &where, e);
    if (bad)
        return bad;
    count(w, f);
    bad = kind->read_faults(&w->accounts, w->texts, w->o->pid, f, symbols, e);
    object_faults_close(f);
    if (!bad)
        choose(w);
    return bad;
}

/* ---- the table ---- */

static void put_row(struct table *t, const struct account_row *r, const struct alloc_texts *texts)
{
    const struct account_sum *sum = &r->of[ACCOUNT_AFTER];
    const char *file = alloc_texts_get(texts, r->key.file);
    struct buf place = BUF_INIT;
    table_row(t);
    table_whole(t, C_FAULTS, faults_of(r));
    table_whole(t, C_MINOR, sum->faults[ACCOUNT_MINOR]);
    table_whole(t, C_MAJOR, sum->faults[ACCOUNT_MAJOR]);
    table_whole(t, C_SHARED, sum->faults[ACCOUNT_SHARED]);
    table_signed(t, C_LIVE, account_live_bytes(sum));
    table_signed(t, C_OBJECTS, account_live_objects(sum));
    table_whole(t, C_PLACES, sum->places);
    table_text(t, C_CLASS, alloc_texts_get(texts, r->key.class));
    table_text(t, C_NAME, alloc_texts_get(texts, r->key.name));
    table_text(t, C_FUNCTION, alloc_texts_get(texts, r->key.function));
    table_text(t, C_MODULE, alloc_texts_get(texts, r->key.module));
    buf_addstr(&place, file ? file : "");
    if (file && r->key.line)
        buf_printf(&place, ":%u", r->key.line);
    table_text(t, C_PLACE, file ? buf_str(&place) : NULL);
    buf_release(&place);
}

static struct table *make_table(const struct watched *w)
{
    static const unsigned named[] = {
        [ACCOUNT_BY_PLACE] = NAMES & ~(1u << C_PLACES),
        [ACCOUNT_BY_FUNCTION] = 1u << C_PLACES | 1u << C_FUNCTION,
        [ACCOUNT_BY_FILE] = 1u << C_PLACES | 1u << C_PLACE,
        [ACCOUNT_BY_DIRECTORY] = 1u << C_PLACES | 1u << C_PLACE,
        [ACCOUNT_BY_MODULE] = 1u << C_PLACES | 1u << C_MODULE,
        [ACCOUNT_BY_CLASS] = 1u << C_PLACES | 1u << C_CLASS,
    };
    struct table *t = table_new("faults", 1, columns, COLUMNS);
    t->hidden = NAMES & ~named[w->o->group];
    vec_each (const struct account_row, r, &w->rows)
        put_row(t, r, w->texts);
    table_sort(t, C_FAULTS, TABLE_MOST_FIRST);
    if (w->o->top && table_rows(t) > w->o->top)
        table_cut(t, w->o->top);
    return t;
}

/* "server (pid 4711): 612 page faults of its objects in 10.0 s, 12 of them major" */
static void write_heading(const struct watched *w, struct sink *out)
{
    struct text_style style = terminal_style(stdout);
    char took[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    text_add_name(&b, &style, w->accounts.processes.at[0].comm);
    buf_printf(&b, " (pid %d): ", (int)w->o->pid);
    text_add_number(&b, w->total.faults[ACCOUNT_MINOR] + w->total.faults[ACCOUNT_MAJOR], "page fault");
    buf_printf(&b, " of its objects in %s, ", units_format_duration(took, w->seconds * 1e9));
    text_add_number(&b, w->total.faults[ACCOUNT_MAJOR], NULL);
    buf_addstr(&b, " of them major\n");
    if (w->o->query) {
        buf_addstr(&b, "where ");
        text_add_name(&b, &style, query_text(w->o->query));
        buf_addstr(&b, "\n");
    }
    sink_printf(out, "%s\n", buf_str(&b));
    buf_release(&b);
}

static void write_json(const struct watched *w, struct sink *out, const struct table *t)
{
    struct json j = {.out = out};
    struct buf schema = BUF_INIT;
    buf_printf(&schema, "allium-%s-faults", w->schema);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", buf_str(&schema));
    buf_release(&schema);
    json_whole(&j, "version", t->version);
    json_whole(&j, "pid", (uint64_t)w->o->pid);
    json_text(&j, "program", w->accounts.processes.at[0].comm);
    json_real(&j, "seconds", w->seconds);
    json_text(&j, "filter", w->o->query ? query_text(w->o->query) : NULL);
    json_text(&j, "group", w->o->group_word);
    json_whole(&j, "minor", w->total.faults[ACCOUNT_MINOR]);
    json_whole(&j, "major", w->total.faults[ACCOUNT_MAJOR]);
    json_whole(&j, "shared", w->total.faults[ACCOUNT_SHARED]);
    json_whole(&j, "elsewhere", w->rest.elsewhere);
    json_whole(&j, "of_none", w->rest.none);
    json_whole(&j, "ended", w->rest.ended);
    json_whole(&j, "lost", w->rest.lost);
    json_flag(&j, "system_calls", !w->user_alone);
    json_whole(&j, "rows_in_all", w->rows.len);
    table_view_json_rows(&j, "rows", t);
    json_close(&j, '}');
}

/* ---- what is said besides ---- */

static void say(uint64_t n, const char *words)
{
    struct buf b = BUF_INIT;
    if (n) {
        text_add_words(&b, n, words);
        command_fail(0, "%s", buf_str(&b));
    }
    buf_release(&b);
}

static void say_rest(const struct watched *w, uint32_t shown)
{
    if (shown < w->rows.len && !w->o->json)
        command_fail(0, "%u of %zu rows are shown; --top 0 shows all", shown, w->rows.len);
    if (w->o->query && !w->places.len)
        command_fail(0, "no place fits %s", query_text(w->o->query));
    say(w->rest.elsewhere,
        "other page fault{s} {was|were} in memory that had no object: stacks, files and the like");
    say(w->rest.none,
        "page fault{s} {was|were} where objects have been, and none was any more when it was looked for");
    say(w->rest.ended,
        "page fault{s} came before the process ended, too late to look for {its object|their objects}");
    say(w->rest.lost, "page fault{s} {was|were} lost: they came faster than they could be read");
    if (w->user_alone)
        command_fail(0, "page faults in system calls were not seen: that takes CAP_PERFMON, or "
                        "kernel.perf_event_paranoid of at most 1");
}

int faults_show(const struct faults_show *o, const struct accounts_kind *kind, struct alloc_texts *texts,
                struct symbols *symbols)
{
    struct watched w = {.o = o, .texts = texts, .schema = kind->schema};
    struct error e = {""};
    int code = read_all(&w, kind, symbols, &e) ? command_fail(EXIT_FAILED, "%s", e.text) : -1;
    if (code < 0) {
        struct text_style style = terminal_style(stdout);
        struct sink out = pager_sink(o->paged);
        struct table *t = make_table(&w);
        if (o->json) {
            write_json(&w, &out, t);
        } else {
            write_heading(&w, &out);
            if (table_rows(t))
                table_view_text(&out, t, &style);
        }
        code = pager_written(&out, EXIT_DONE);
        say_rest(&w, table_rows(t));
        table_free(t);
    }
    accounts_release(&w.accounts);
    vec_release(&w.places);
    vec_release(&w.rows);
    return code;
}
