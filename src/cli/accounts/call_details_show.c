/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/call_details_show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/option_values.h"
#include "cli/pager.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "collect/accounts/call_details_read.h"
#include "collect/ledger/profile_names.h"
#include "model/accounts/accounts_table.h"
#include "view/table/table_folded.h"
#include "view/table/table_view.h"

/* What tells places apart, behind the figures. */
#define PLACE_COLUMNS                                                                                        \
    {.name = "class", .type = TABLE_TEXT, .hide_if_empty = true},                                            \
        {.name = "name", .type = TABLE_TEXT, .hide_if_empty = true},                                         \
        {.name = "function", .type = TABLE_TEXT, .hide_if_empty = true},                                     \
    {                                                                                                        \
        .name = "place", .type = TABLE_TEXT, .hide_if_empty = true                                           \
    }

enum { CALLS, BYTES, STACK_PLACE, STACK = STACK_PLACE + 4 };
static const struct table_column stack_columns[] = {
    {.name = "allocations", .unit = TABLE_COUNT, .type = TABLE_WHOLE},
    {.name = "allocated", .unit = TABLE_BYTES, .type = TABLE_WHOLE},
    PLACE_COLUMNS,
    {.name = "stack", .type = TABLE_LINES},
};

enum { TIMED, HALF, MOST_OF_ALL, NEARLY_ALL, LONGEST, TOTAL, TIMES_PLACE, TIMES = TIMES_PLACE + 4 };
static const struct table_column latency_columns[] = {
    {.name = "calls", .unit = TABLE_COUNT, .type = TABLE_WHOLE},
    {.name = "p50", .unit = TABLE_DURATION, .type = TABLE_WHOLE},
    {.name = "p90", .unit = TABLE_DURATION, .type = TABLE_WHOLE},
    {.name = "p99", .unit = TABLE_DURATION, .type = TABLE_WHOLE},
    {.name = "longest", .unit = TABLE_DURATION, .type = TABLE_WHOLE},
    {.name = "total", .unit = TABLE_DURATION, .type = TABLE_WHOLE},
    PLACE_COLUMNS,
    {.name = "latency", .unit = TABLE_DURATION, .type = TABLE_HISTOGRAM},
};

struct request {
    const struct command *c;
    const struct wrappers *sites; /* NULL: of tags */
    pid_t pid;
    struct query *query;
    uint32_t top;
    bool latency, json, folded, paged;
};

static struct table *stacks_table(const char *schema, const struct tags_details *d,
                                  const struct alloc_texts *texts)
{
    struct table *t = table_new(schema, 1, stack_columns, sizeof(stack_columns) / sizeof(*stack_columns));
    vec_each (const struct tags_call, call, &d->calls) {
        table_row(t);
        table_whole(t, CALLS, call->calls);
        table_whole(t, BYTES, call->bytes);
        account_names_put(t, STACK_PLACE, &call->place, texts);
        table_text(t, STACK, call->stack);
    }
    table_sort(t, CALLS, TABLE_MOST_FIRST);
    return t;
}

/* By powers of two, as tables have histograms. */
static void put_times(struct table *t, const struct tags_latency *l)
{
    uint64_t slots[TABLE_SLOTS] = {0};
    for (uint32_t class = 0; class < LEDGER_LATENCY_CLASSES; class ++)
        slots[table_slot(ledger_latency_least(class))] += l->of[class];
    table_histogram(t, TIMES, slots, TABLE_SLOTS);
}

static struct table *latency_table(const struct tags_details *d, const struct alloc_texts *texts)
{
    struct table *t =
        table_new("tags-latency", 1, latency_columns, sizeof(latency_columns) / sizeof(*latency_columns));
    vec_each (const struct tags_latency, l, &d->latencies) {
        table_row(t);
        table_whole(t, TIMED, l->calls);
        table_whole(t, HALF, tags_latency_quantile(l, 0.5));
        table_whole(t, MOST_OF_ALL, tags_latency_quantile(l, 0.9));
        table_whole(t, NEARLY_ALL, tags_latency_quantile(l, 0.99));
        table_whole(t, LONGEST, l->most_ns);
        table_whole(t, TOTAL, l->sum_ns);
        account_names_put(t, TIMES_PLACE, &l->place, texts);
        put_times(t, l);
    }
    table_sort(t, TOTAL, TABLE_MOST_FIRST);
    return t;
}

static void say(uint64_t n, const char *words)
{
    struct buf b = BUF_INIT;
    text_add_words(&b, n, words);
    if (n)
        command_fail(0, "%s", buf_str(&b));
    buf_release(&b);
}

static void say_what_lacks(const struct request *q, const struct tags_details *d, uint32_t shown,
                           uint32_t all)
{
    const char *what = q->latency ? "times" : "stacks",
               *fits = q->query ? " of sites that match --where" : "";
    if (!all && d->process.alive)
        command_fail(0,
                     "no %s of calls were recorded%s: request them with `allium set %d --where QUERY %s` (if "
                     "you did, nothing that matches was called since)",
                     what, fits, (int)q->pid, q->latency ? "latency" : "stacks");
    else if (!all)
        command_fail(0, "no %s of calls were recorded%s: nobody requested them while process %d ran", what,
                     fits, (int)q->pid);
    if (shown < all)
        command_fail(0, "%u of %u rows are shown; --top 0 shows all", shown, all);
    say(d->lost, "call{s} {is|are} missing: the ledger has no room for more stacks or times");
    say(q->latency ? 0 : d->cut, "stack{s} {is|are} deeper than the limit, and {is|are} cut");
    say(d->damaged, "record{s} of the ledger {is|are} damaged");
}

static int show(const struct request *q, const struct tags_details *d, const struct alloc_texts *texts)
{
    struct sink out = pager_sink(q->paged);
    struct text_style style = terminal_style(stdout);
    struct table *t = q->latency ? latency_table(d, texts)
                                 : stacks_table(q->sites ? "sites-stacks" : "tags-stacks", d, texts);
    uint32_t all = table_rows(t);
    if (q->top && all > q->top)
        table_cut(t, q->top);
    if (q->json)
        table_view_json(&out, t);
    else if (q->folded)
        table_folded_write(&out, t, CALLS);
    else if (all)
        table_view_text(&out, t, &style);
    int code = pager_written(&out, EXIT_DONE);
    say_what_lacks(q, d, table_rows(t), all);
    table_free(t);
    return code;
}

static int parse(struct request *q, const struct arguments *a)
{
    static const char *const not_here[] = {"by",    "sort",     "allocinfo", "openmetrics", "freed",
                                           "count", "duration", "interval",  "faults",      NULL};
    const char *where = command_value(q->c, a, "where");
    const char *what = q->latency ? "--latency" : command_value(q->c, a, "stacks") ? "--stacks" : "--folded";
    struct error e = {""};
    for (int i = 0; not_here[i]; i++)
        if (command_value(q->c, a, not_here[i]))
            return command_misuse(q->c, "%s lists calls as they are: leave out --%s", what, not_here[i]);
    if (a->n_many)
        return command_misuse(q->c, "%s lists calls as they are: leave out --fail-if", what);
    q->folded = command_value(q->c, a, "folded");
    q->json = command_value(q->c, a, "json");
    q->paged = !command_value(q->c, a, "no-pager");
    if (q->folded && (q->latency || q->json))
        return command_misuse(q->c, "--folded goes with --stacks alone");
    if (q->latency && command_value(q->c, a, "stacks"))
        return command_misuse(q->c, "--stacks or --latency, not both");
    q->top = q->json || q->folded ? 0 : OPTION_VALUES_TOP_DEFAULT;
    int code = option_values_parse_top(q->c, command_value(q->c, a, "top"), &q->top);
    if (code >= 0)
        return code;
    if (a->n_rest != 1 || source_kind(a->rest[0]) != SOURCE_PROCESS)
        return command_misuse(q->c, "%s takes one process id", what);
    code = source_parse_pid(q->c, a->rest[0], &q->pid);
    if (code >= 0)
        return code;
    if (where && account_query_parse(&q->query, where, &e))
        return command_misuse(q->c, "--where: %s", e.text);
    return -1;
}

static int read_and_show(struct request *q)
{
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct tags_details d;
    struct error e = {""};
    char *cache = profile_names_cache_dir();
    struct symbols *symbols = symbols_new(cache);
    int bad = q->sites ? sites_details_read(&d, &texts, q->pid, q->query, symbols, q->sites, &e)
                       : tags_details_read(&d, &texts, q->pid, q->query, symbols, &e);
    int code = bad ? command_fail(EXIT_FAILED, "%s", e.text) : show(q, &d, &texts);
    tags_details_release(&d);
    alloc_texts_release(&texts);
    symbols_free(symbols);
    free(cache);
    return code;
}

int call_details_command(const struct command *c, const struct wrappers *sites, int argc, char **argv)
{
    struct request q = {.c = c, .sites = sites};
    struct arguments a;
    int code = command_parse(c, argc, argv, false, &a);
    if (code >= 0)
        return code;
    q.latency = !sites && command_value(c, &a, "latency");
    if (!q.latency && !command_value(c, &a, "stacks") && !command_value(c, &a, "folded"))
        return -1;
    code = parse(&q, &a);
    if (code < 0)
        code = read_and_show(&q);
    query_free(q.query);
    return code;
}
