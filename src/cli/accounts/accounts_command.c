/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/accounts_command.h"

#include <stdlib.h>

#include "base/units.h"
#include "cli/accounts/accounts_source.h"
#include "cli/accounts/faults_command.h"
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

static const struct word groups[] = {{"place", ACCOUNT_BY_PLACE},     {"function", ACCOUNT_BY_FUNCTION},
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
                                          {"freed", ACCOUNT_SORT_FREED_HERE},
                                          {NULL, 0}};

/* All that one call was asked for. */
struct request {
    const struct accounts_kind *kind;
    struct accounts_view show;
    struct query *query;
    const char *sources[ACCOUNT_MOMENTS];
    int n_sources;
    struct intervals intervals;
    uint64_t faults_ns; /* 0: they are not asked for */
    bool paged, sorted;
};

/* ---- options; each gives -1 to go on, or the exit code ---- */

static int parse_format(struct request *q, const struct arguments *a)
{
    const struct command *c = q->kind->command;
    const char *given = NULL;
    for (const struct word *w = formats; w->text; w++) {
        if (!command_value(c, a, w->text))
            continue;
        if (given)
            return command_misuse(c, "--%s or --%s, not both", given, w->text);
        given = w->text;
        q->show.format = (enum accounts_format)w->value;
    }
    q->paged = !command_value(c, a, "no-pager");
    return -1;
}

/* Combinations that have no meaning. */
static int refuse(const struct request *q, const struct arguments *a)
{
    static const char *const not_with_text[] = {"by", "sort", "interval", "top", NULL};
    const struct command *c = q->kind->command;
    bool metrics = q->show.format == ACCOUNTS_OPENMETRICS,
         text = metrics || q->show.format == ACCOUNTS_ALLOCINFO;
    const char *format = option_values_name(formats, q->show.format);
    for (int i = 0; text && not_with_text[i + metrics]; i++)
        if (command_value(c, a, not_with_text[i]))
            return command_misuse(c, "--%s writes all places as they are: leave out --%s", format,
                                  not_with_text[i]);
    if (text && a->n_rest > 1)
        return command_misuse(c, "--%s is of one source, not of a change", format);
    if (a->n_rest > ACCOUNT_MOMENTS)
        return command_misuse(c, "two sources at most, not also %s", a->rest[ACCOUNT_MOMENTS]);
    if (q->intervals.every_ns && (a->n_rest != 1 || source_kind(a->rest[0]) != SOURCE_PROCESS))
        return command_misuse(c, "--interval reads one process again and again: name that, and nothing else");
    return -1;
}

static int parse_shape(struct request *q, const struct arguments *a)
{
    const struct command *c = q->kind->command;
    enum account_view view = q->intervals.every_ns ? ACCOUNT_RATE
                             : a->n_rest > 1       ? ACCOUNT_CHANGE
                                                   : ACCOUNT_NOW;
    const struct word *words = q->kind->sites ? site_orders : orders;
    bool freed = q->kind->sites && command_value(c, a, "freed");
    int group = ACCOUNT_BY_PLACE;
    int sort = freed                  ? ACCOUNT_SORT_FREED_HERE
               : view == ACCOUNT_RATE ? (q->kind->sites ? ACCOUNT_SORT_TOTAL : ACCOUNT_SORT_ALLOCATED)
               : view == ACCOUNT_NOW && q->kind->sites ? ACCOUNT_SORT_TOTAL
                                                       : ACCOUNT_SORT_LIVE;
    uint32_t top = q->show.format == ACCOUNTS_SCREEN        ? OPTION_VALUES_TOP_DEFAULT
                   : q->show.format == ACCOUNTS_OPENMETRICS ? TOP_OPENMETRICS
                                                            : 0;
    q->sorted = command_value(c, a, "sort");
    int code = option_values_parse(c, "by", command_value(c, a, "by"), groups, &group);
    if (code < 0)
        code = option_values_parse(c, "sort", command_value(c, a, "sort"), words, &sort);
    if (code < 0)
        code = option_values_parse_top(c, command_value(c, a, "top"), &top);
    q->show.shape = (struct account_shape){.schema = q->kind->schema,
                                           .view = view,
                                           .kind = freed            ? ACCOUNT_OF_SITES_FREED
                                                   : q->kind->sites ? ACCOUNT_OF_SITES
                                                                    : ACCOUNT_OF_TAGS,
                                           .group = (enum account_group)group,
                                           .sort = (enum account_order)sort,
                                           .top = top};
    q->show.group = option_values_name(groups, group);
    q->show.order = option_values_name(words, sort);
    return code;
}

static int parse_faults(struct request *q, const struct arguments *a)
{
    static const char *const not_with_it[] = {"sort", "interval", "allocinfo", "openmetrics", "freed", NULL};
    const struct command *c = q->kind->command;
    const char *text = q->kind->read_faults ? command_value(c, a, "faults") : NULL;
    if (!text)
        return -1;
    int code = option_values_parse_time(c, "faults", text, FAULTS_LEAST_NS, &q->faults_ns);
    if (code >= 0)
        return code;
    for (int i = 0; not_with_it[i]; i++)
        if (command_value(c, a, not_with_it[i]))
            return command_misuse(c, "--faults counts page faults, for so long: leave out --%s",
                                  not_with_it[i]);
    if (a->n_rest != 1 || source_kind(a->rest[0]) != SOURCE_PROCESS ||
        q->show.shape.group == ACCOUNT_BY_PROCESS)
        return command_misuse(c, "--faults are of one process that runs: name that");
    if (!source_pid(a->rest[0]))
        return command_misuse(c, "%s is no process id", a->rest[0]);
    return -1;
}

static int parse_query(struct request *q, const char *where)
{
    struct error e = {""};
    if (where && account_query_parse(&q->query, where, &e))
        return command_misuse(q->kind->command, "--where: %s", e.text);
    q->show.query = q->query;
    if (q->query && q->show.format == ACCOUNTS_OPENMETRICS && account_query_needs_figures(q->query))
        return command_misuse(q->kind->command,
                              "--openmetrics takes a --where about names only: by figures, a place that fits "
                              "no longer would make a counter fall");
    return -1;
}

static int parse(struct request *q, int argc, char **argv)
{
    const struct command *c = q->kind->command;
    struct arguments a;
    int code = command_parse(c, argc, argv, false, &a);
    if (code < 0)
        code = parse_format(q, &a);
    if (code < 0)
        code = intervals_parse(&q->intervals, c, &a);
    if (code < 0)
        code = refuse(q, &a);
    if (code < 0)
        code = parse_shape(q, &a);
    if (code < 0)
        code = parse_faults(q, &a);
    if (code < 0)
        code = parse_query(q, command_value(c, &a, "where"));
    if (code >= 0)
        return code;
    for (; q->n_sources < a.n_rest; q->n_sources++)
        q->sources[q->n_sources] = a.rest[q->n_sources];
    q->n_sources += !q->n_sources; /* none: the newest recording */
    return -1;
}

/* ---- work ---- */

/* What was read so far. */
struct work {
    struct request *q;
    struct alloc_texts texts;
    struct symbols *symbols;
    struct accounts_reading of[ACCOUNT_MOMENTS];
    int now;
    struct sink out;
    struct buf notes;
};

/* -1, or the exit code after a line. */
static int read_one(struct work *w, int moment, const char *source)
{
    struct error e = {""};
    struct accounts_reading *r = &w->of[moment];
    accounts_reading_release(r);
    int bad = accounts_source_read(r, w->q->kind, source, &w->texts, w->symbols, &e);
    return bad ? command_fail(EXIT_FAILED, "%s", e.text) : -1;
}

/* The source is a program that does not run: all that is asked for of it. */
static int show_binary(struct work *w)
{
    const struct request *q = w->q;
    const struct accounts_view *o = &q->show;
    bool text = o->format == ACCOUNTS_ALLOCINFO || o->format == ACCOUNTS_OPENMETRICS;
    struct places_view places = {.source = q->sources[0],
                                 .group = o->shape.group,
                                 .group_word = o->group,
                                 .query = o->query,
                                 .top = o->shape.top,
                                 .json = o->format == ACCOUNTS_JSON,
                                 .style = o->style};
    struct error e = {""};
    if (q->sorted || text || o->shape.group == ACCOUNT_BY_PROCESS)
        return command_misuse(q->kind->command, "%s is a file, in which nothing is counted: leave out --%s",
                              q->sources[0],
                              q->sorted ? "sort"
                              : text    ? option_values_name(formats, o->format)
                                        : "by process");
    struct accounts *a = &w->of[ACCOUNT_AFTER].accounts;
    if (q->kind->read_binary(a, &w->texts, q->sources[0], w->symbols, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    w->out = pager_sink(q->paged);
    places_view_write(&w->out, &places, a, &w->texts, &w->notes);
    return pager_written(&w->out, EXIT_DONE);
}

static void note_rest(struct buf *notes, const struct request *q, const struct accounts *a, bool fits)
{
    size_t before = notes->len;
    accounts_view_note_losses(notes, a, q->kind->losses);
    if (!a->rows.len && notes->len == before)
        notes_add(notes, "%s", q->kind->none);
    else if (a->rows.len && !fits)
        notes_add(notes, "no place fits %s", query_text(q->query));
}

static int show_once(struct work *w)
{
    struct request *q = w->q;
    bool two = q->n_sources == ACCOUNT_MOMENTS;
    int code = two ? read_one(w, ACCOUNT_BEFORE, q->sources[0]) : -1;
    if (code < 0)
        code = read_one(w, ACCOUNT_AFTER, q->sources[two]);
    if (code >= 0)
        return code;
    const struct accounts_reading *before = &w->of[ACCOUNT_BEFORE], *after = &w->of[ACCOUNT_AFTER];
    if (two)
        q->show.shape.seconds = accounts_seconds(&before->accounts, &after->accounts);
    w->out = pager_sink(q->paged);
    bool fits = accounts_view_write(&w->out, &q->show, &w->texts, two ? before : NULL, after, &w->notes);
    code = pager_written(&w->out, EXIT_DONE);
    if (two && q->show.shape.seconds <= 0) /* else they are among those after */
        accounts_view_note_losses(&w->notes, &before->accounts, q->kind->losses);
    note_rest(&w->notes, q, &after->accounts, fits);
    command_notes(&w->notes);
    if (q->kind->advise && q->show.format == ACCOUNTS_SCREEN)
        q->kind->advise(&after->accounts, &w->texts);
    return code;
}

/* One of a series. It ends with its process. */
static int look(void *arg, uint64_t began_ns, uint64_t elapsed_ns)
{
    struct work *w = arg;
    struct accounts_view *show = &w->q->show;
    w->now = !w->now;
    int code = read_one(w, w->now, w->q->sources[0]);
    if (code >= 0)
        return code;
    const struct accounts *a = &w->of[w->now].accounts;
    if (elapsed_ns) {
        show->began_ns = began_ns;
        show->elapsed_ns = elapsed_ns;
        show->shape.seconds = (double)elapsed_ns / 1e9;
        accounts_view_write(&w->out, show, &w->texts, &w->of[!w->now], &w->of[w->now], &w->notes);
    }
    if (sink_finish(&w->out))
        return EXIT_DONE;
    vec_each (const struct account_process, p, &a->processes)
        if (p->alive)
            return -1;
    return command_fail(elapsed_ns ? EXIT_DONE : EXIT_FAILED, "%s has ended", w->q->sources[0]);
}

static int show_series(struct work *w)
{
    w->out = sink_to_file(stdout);
    w->q->show.line = true;
    int code = intervals_run(&w->q->intervals, look, w);
    accounts_view_note_losses(&w->notes, &w->of[w->now].accounts, w->q->kind->losses);
    return command_written(&w->out, code);
}

static int show_faults(struct work *w)
{
    const struct request *q = w->q;
    struct faults_options o = {.pid = source_pid(q->sources[0]),
                               .duration_ns = q->faults_ns,
                               .group = q->show.shape.group,
                               .group_word = q->show.group,
                               .query = q->show.query,
                               .top = q->show.shape.top,
                               .json = q->show.format == ACCOUNTS_JSON,
                               .paged = q->paged};
    return faults_command(&o, q->kind, &w->texts, w->symbols);
}

static bool is_binary(const struct request *q)
{
    return q->kind->read_binary && q->n_sources == 1 && q->sources[0] && tags_file_is_binary(q->sources[0]);
}

int accounts_command(const struct accounts_kind *kind, int argc, char **argv)
{
    struct request q = {.kind = kind, .show = {.style = terminal_style(stdout)}};
    struct work w = {.q = &q, .texts = {.bytes = BUF_INIT}, .notes = BUF_INIT};
    int code = parse(&q, argc, argv);
    if (code < 0) {
        char *cache = profile_names_cache_dir();
        w.symbols = symbols_new(cache);
        code = q.faults_ns            ? show_faults(&w)
               : is_binary(&q)        ? show_binary(&w)
               : q.intervals.every_ns ? show_series(&w)
                                      : show_once(&w);
        command_notes(&w.notes);
        symbols_free(w.symbols);
        free(cache);
    }
    for (int moment = 0; moment < ACCOUNT_MOMENTS; moment++)
        accounts_reading_release(&w.of[moment]);
    alloc_texts_release(&w.texts);
    query_free(q.query);
    return code;
}
