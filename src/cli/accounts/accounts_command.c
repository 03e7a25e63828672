/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/accounts_command.h"

#include <stdlib.h>

#include "base/units.h"
#include "cli/accounts/accounts_source.h"
#include "cli/accounts/faults_command.h"
#include "cli/condition.h"
#include "cli/option_values.h"
#include "cli/pager.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "collect/accounts/tags_file.h"
#include "collect/ledger/profile_names.h"
#include "view/accounts/accounts_view.h"
#include "view/accounts/places_view.h"
#include "view/text/notes.h"

#define TOP_OPENMETRICS 20
#define FAULTS_LEAST_NS 1000000u

static const struct word groups[] = {{"site", ACCOUNT_BY_PLACE},      {"function", ACCOUNT_BY_FUNCTION},
                                     {"file", ACCOUNT_BY_FILE},       {"directory", ACCOUNT_BY_DIRECTORY},
                                     {"module", ACCOUNT_BY_MODULE},   {"class", ACCOUNT_BY_CLASS},
                                     {"process", ACCOUNT_BY_PROCESS}, {NULL, 0}};
static const struct word orders[] = {{"live", ACCOUNT_SORT_LIVE},
                                     {"objects", ACCOUNT_SORT_OBJECTS},
                                     {"peak", ACCOUNT_SORT_PEAK},
                                     {"allocated", ACCOUNT_SORT_ALLOCATED},
                                     {"allocations", ACCOUNT_SORT_ALLOCATIONS},
                                     {"failed", ACCOUNT_SORT_FAILED},
                                     {NULL, 0}};
/* What writes all as it is. */
static const struct word formats[] = {{"json", ACCOUNTS_JSON},
                                      {"allocinfo", ACCOUNTS_ALLOCINFO},
                                      {"openmetrics", ACCOUNTS_OPENMETRICS},
                                      {NULL, 0}};

static const struct word site_orders[] = {{"total", ACCOUNT_SORT_TOTAL},
                                          {"slack", ACCOUNT_SORT_SLACK},
                                          {"live", ACCOUNT_SORT_LIVE},
                                          {"objects", ACCOUNT_SORT_OBJECTS},
                                          {"allocations", ACCOUNT_SORT_ALLOCATIONS},
                                          {"frees", ACCOUNT_SORT_FREES},
                                          {"failed", ACCOUNT_SORT_FAILED},
                                          {"freed", ACCOUNT_SORT_FREED_BY_SITE},
                                          {NULL, 0}};

static const struct word compared[] = {
    {"live", ACCOUNT_METRIC_LIVE},           {"objects", ACCOUNT_METRIC_OBJECTS},
    {"allocated", ACCOUNT_METRIC_ALLOCATED}, {"allocations", ACCOUNT_METRIC_ALLOCATIONS},
    {"failed", ACCOUNT_METRIC_FAILED},       {NULL, 0}};
static const struct condition_metrics exact_metrics = {compared, account_metric_counts};

/* The options of one call. */
struct request {
    struct accounts_show show;
    struct query *query;
    struct account_growth growth[CONDITIONS_MAX];
    uint64_t faults_ns; /* duration of --faults; 0: it was not given */
    bool sorted;        /* --sort was given */
};

/* ---- options; each gives -1 to go on, or the exit code ---- */

static int parse_format(struct request *q, const struct arguments *a)
{
    const struct command *c = q->show.kind->command;
    const char *given = NULL;
    for (const struct word *w = formats; w->text; w++) {
        if (!command_value(c, a, w->text))
            continue;
        if (given)
            return command_misuse(c, "--%s or --%s, not both", given, w->text);
        given = w->text;
        q->show.view.format = (enum accounts_format)w->value;
    }
    q->show.paged = !command_value(c, a, "no-pager");
    return -1;
}

/* Combinations that have no meaning. */
static int refuse(const struct request *q, const struct arguments *a)
{
    static const char *const not_with_text[] = {"by", "sort", "interval", "top", NULL};
    const struct command *c = q->show.kind->command;
    bool metrics = q->show.view.format == ACCOUNTS_OPENMETRICS,
         text = metrics || q->show.view.format == ACCOUNTS_ALLOCINFO;
    const char *format = option_values_name(formats, q->show.view.format);
    for (int i = 0; text && not_with_text[i + metrics]; i++)
        if (command_value(c, a, not_with_text[i]))
            return command_misuse(c, "--%s writes all sites unchanged: leave out --%s", format,
                                  not_with_text[i]);
    if (text && a->n_rest > 1)
        return command_misuse(c, "--%s takes one source: leave out the second", format);
    if (a->n_rest > ACCOUNT_MOMENTS)
        return command_misuse(c, "too many sources: leave out %s", a->rest[ACCOUNT_MOMENTS]);
    if (q->show.intervals.every_ns && (a->n_rest != 1 || source_kind(a->rest[0]) != SOURCE_PROCESS))
        return command_misuse(c, "--interval needs one running process: give its process id alone");
    return -1;
}

static int parse_shape(struct request *q, const struct arguments *a)
{
    const struct command *c = q->show.kind->command;
    enum account_view view = q->show.intervals.every_ns ? ACCOUNT_RATE
                             : a->n_rest > 1            ? ACCOUNT_CHANGE
                                                        : ACCOUNT_NOW;
    const struct word *words = q->show.kind->sites ? site_orders : orders;
    bool freed = q->show.kind->sites && command_value(c, a, "freed");
    int group = ACCOUNT_BY_PLACE;
    int sort = freed                  ? ACCOUNT_SORT_FREED_BY_SITE
               : view == ACCOUNT_RATE ? (q->show.kind->sites ? ACCOUNT_SORT_TOTAL : ACCOUNT_SORT_ALLOCATED)
               : view == ACCOUNT_NOW && q->show.kind->sites ? ACCOUNT_SORT_TOTAL
                                                            : ACCOUNT_SORT_LIVE;
    uint32_t top = q->show.view.format == ACCOUNTS_SCREEN        ? OPTION_VALUES_TOP_DEFAULT
                   : q->show.view.format == ACCOUNTS_OPENMETRICS ? TOP_OPENMETRICS
                                                                 : 0;
    q->sorted = command_value(c, a, "sort");
    int code = option_values_parse(c, "by", command_value(c, a, "by"), groups, &group);
    if (code < 0)
        code = option_values_parse(c, "sort", command_value(c, a, "sort"), words, &sort);
    if (code < 0)
        code = option_values_parse_top(c, command_value(c, a, "top"), &top);
    q->show.view.shape = (struct account_shape){.schema = q->show.kind->schema,
                                                .view = view,
                                                .kind = freed                 ? ACCOUNT_OF_SITES_FREED
                                                        : q->show.kind->sites ? ACCOUNT_OF_SITES
                                                                              : ACCOUNT_OF_TAGS,
                                                .group = (enum account_group)group,
                                                .sort = (enum account_order_by)sort,
                                                .top = top};
    q->show.view.group = option_values_name(groups, group);
    q->show.view.order = option_values_name(words, sort);
    return code;
}

/* --html, which only some kinds have. */
static int parse_page(struct request *q, const struct arguments *a)
{
    static const char *const not_with_it[] = {"interval", "faults", "allocinfo", "openmetrics", NULL};
    const struct command *c = q->show.kind->command;
    if (!q->show.kind->has_page)
        return -1;
    q->show.html = command_value(c, a, "html");
    q->show.force = command_value(c, a, "force") != NULL;
    if (q->show.force && !q->show.html)
        return command_misuse(c, "--force needs --html: it replaces the file that --html names");
    for (int i = 0; q->show.html && not_with_it[i]; i++)
        if (command_value(c, a, not_with_it[i]))
            return command_misuse(c, "--html writes one table of accounts: leave out --%s", not_with_it[i]);
    return -1;
}

static int parse_faults(struct request *q, const struct arguments *a)
{
    static const char *const not_with_it[] = {"sort", "interval", "allocinfo", "openmetrics", "freed", NULL};
    const struct command *c = q->show.kind->command;
    const char *text = q->show.kind->find_objects ? command_value(c, a, "faults") : NULL;
    if (!text)
        return -1;
    int code = option_values_parse_time(c, "faults", text, FAULTS_LEAST_NS, &q->faults_ns);
    if (code >= 0)
        return code;
    for (int i = 0; not_with_it[i]; i++)
        if (command_value(c, a, not_with_it[i]))
            return command_misuse(c, "--faults has a duration of its own: leave out --%s", not_with_it[i]);
    if (a->n_rest != 1 || source_kind(a->rest[0]) != SOURCE_PROCESS ||
        q->show.view.shape.group == ACCOUNT_BY_PROCESS)
        return command_misuse(c, "--faults needs one running process: give its process id");
    pid_t pid;
    return source_parse_pid(c, a->rest[0], &pid);
}

static int parse_conditions(struct request *q, const struct arguments *a)
{
    struct condition conditions[CONDITIONS_MAX];
    struct accounts_view *v = &q->show.view;
    int n, code = condition_parse_all(conditions, &n, q->show.kind->command, a, &exact_metrics);
    if (code >= 0 || !n)
        return code;
    if (v->shape.view != ACCOUNT_CHANGE)
        return command_misuse(q->show.kind->command,
                              "--fail-if compares two sources: give the older one, then the newer");
    if (v->shape.kind == ACCOUNT_OF_SITES_FREED)
        return command_misuse(q->show.kind->command,
                              "--fail-if compares what sites allocated: leave out --freed");
    for (int i = 0; i < n; i++)
        q->growth[i] = (struct account_growth){.condition = conditions[i].text,
                                               .metric = (enum account_metric)conditions[i].metric,
                                               .share = conditions[i].share,
                                               .amount = conditions[i].amount};
    v->growth = q->growth;
    v->n_growth = (size_t)n;
    return -1;
}

static int parse_query(struct request *q, const char *where)
{
    struct error e = {""};
    if (where && account_query_parse(&q->query, where, &e))
        return command_misuse(q->show.kind->command, "--where: %s", e.text);
    q->show.view.query = q->query;
    if (q->query && q->show.view.format == ACCOUNTS_OPENMETRICS && account_query_needs_figures(q->query))
        return command_misuse(q->show.kind->command,
                              "--openmetrics takes a --where about names only: a site that matches by its "
                              "figures may stop matching, and a counter would fall");
    return -1;
}

static int parse(struct request *q, int argc, char **argv)
{
    const struct command *c = q->show.kind->command;
    struct arguments a;
    int code = command_parse(c, argc, argv, false, &a);
    if (code < 0)
        code = parse_format(q, &a);
    if (code < 0)
        code = intervals_parse(&q->show.intervals, c, &a, NULL);
    if (code < 0)
        code = parse_page(q, &a);
    if (code < 0)
        code = refuse(q, &a);
    if (code < 0)
        code = parse_shape(q, &a);
    if (code < 0)
        code = parse_conditions(q, &a);
    if (code < 0)
        code = parse_faults(q, &a);
    if (code < 0)
        code = parse_query(q, command_value(c, &a, "where"));
    if (code >= 0)
        return code;
    for (; q->show.n_sources < a.n_rest; q->show.n_sources++)
        q->show.sources[q->show.n_sources] = a.rest[q->show.n_sources];
    q->show.n_sources += !q->show.n_sources; /* none: the newest recording */
    return -1;
}

/* ---- work ---- */

/* The source is a program file: its places, without counts. */
static int show_binary(const struct request *q)
{
    const struct accounts_view *o = &q->show.view;
    bool text = o->format == ACCOUNTS_ALLOCINFO || o->format == ACCOUNTS_OPENMETRICS;
    struct error e = {""};
    if (q->show.html)
        return command_misuse(q->show.kind->command,
                              "%s is a program file without counters: leave out --html", q->show.sources[0]);
    if (q->sorted || text || o->shape.group == ACCOUNT_BY_PROCESS)
        return command_misuse(q->show.kind->command, "%s is a program file without counters: leave out --%s",
                              q->show.sources[0],
                              q->sorted ? "sort"
                              : text    ? option_values_name(formats, o->format)
                                        : "by process");
    struct accounts a = {0};
    if (q->show.kind->read_binary(&a, q->show.texts, q->show.sources[0], q->show.symbols, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    struct sink out = pager_sink(q->show.paged);
    places_view_write(&out, o, q->show.sources[0], &a, q->show.texts, q->show.notes);
    accounts_release(&a);
    return pager_written(&out, EXIT_DONE);
}

static bool is_binary(const struct accounts_show *s)
{
    return s->kind->read_binary && s->n_sources == 1 && s->sources[0] && tags_file_is_binary(s->sources[0]);
}

int accounts_command(const struct accounts_kind *kind, int argc, char **argv)
{
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct buf notes = BUF_INIT;
    struct request q = {
        .show = {.kind = kind, .view = {.style = terminal_style(stdout)}, .texts = &texts, .notes = &notes}};
    int code = parse(&q, argc, argv);
    if (code < 0) {
        char *cache = profile_names_cache_dir();
        q.show.symbols = symbols_new(cache);
        code = q.faults_ns          ? faults_command(&q.show, q.faults_ns)
               : is_binary(&q.show) ? show_binary(&q)
                                    : accounts_show(&q.show);
        command_notes(&notes);
        symbols_free(q.show.symbols);
        free(cache);
    }
    alloc_texts_release(&texts);
    query_free(q.query);
    return code;
}
