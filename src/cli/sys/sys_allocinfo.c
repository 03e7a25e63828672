/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/intervals.h"
#include "cli/option_values.h"
#include "cli/pager.h"
#include "cli/terminal.h"
#include "collect/accounts/allocinfo.h"
#include "view/accounts/allocinfo_view.h"

#define TOP_DEFAULT 20
#define SECOND_NS   1000000000u

static const struct option_doc options[] = {
    {"by", 0, "GROUP", "site (default), file, directory, module or function"},
    {"sort", 0, "COLUMN",
     "rows with the most of it first, with +COLUMN the least: size, calls, average, name ..."},
    {"where", 0, "QUERY", "only sites that fit: 'dir:drivers size>1M !module:*', see allium-query(7)"},
    {"top", 0, "N", "so many rows (20); 0: all"},
    INTERVALS_OPTIONS,
    {"allocinfo", 0, NULL, "as the kernel writes it, version 2.0"},
    {"json", 0, NULL, "as JSON, see allium-json(5)"},
    {"no-pager", 0, NULL, "print a long screen at once, not through $PAGER"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "sudo allium sys allocinfo",
    "which places in the kernel's source hold most memory, now",
    "allium sys allocinfo before after --by directory",
    "what has changed between two copies that were saved with cat",
    "sudo allium sys allocinfo --interval 5s --where 'module:nf_*'",
    "what grows, in a second, of some modules",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_sys_allocinfo = {
    .name = "sys allocinfo",
    .usage =
        "[FILE [NEWER]] [--by GROUP] [--sort COLUMN] [--where QUERY] [--top N] [--interval TIME] [--count N] "
        "[--duration TIME] [--allocinfo] [--json] [--no-pager]",
    .summary = "what each place in the kernel's source holds, from /proc/allocinfo or a copy of it",
    .examples = examples,
    .options = options,
    .run = run,
};

static const struct word groups[] = {{"site", ALLOC_BY_SITE},           {"file", ALLOC_BY_FILE},
                                     {"directory", ALLOC_BY_DIRECTORY}, {"module", ALLOC_BY_MODULE},
                                     {"function", ALLOC_BY_FUNCTION},   {NULL, 0}};

/* All that one call was asked for. */
struct request {
    const char *files[ALLOC_MOMENTS]; /* NULL: the kernel's own */
    int n_files;
    struct allocinfo_view show;
    struct query *query;
    struct intervals interval;
    bool paged;
};

/* ---- options; each gives -1 to go on, or the exit code ---- */

static const char *value(const struct arguments *a, const char *name)
{
    return command_value(&command_sys_allocinfo, a, name);
}

static int refuse_sort(const struct alloc_shape *shape, const char *text)
{
    struct buf list = BUF_INIT;
    for (unsigned i = 0; i < ALLOC_COLUMNS; i++)
        if (alloc_column_has(shape->view, shape->group, i))
            buf_printf(&list, "%s, ", alloc_columns[i].name);
    int code = command_misuse(&command_sys_allocinfo, "--sort %s is not known here: it can be %sor name",
                              text, buf_str(&list));
    buf_release(&list);
    return code;
}

static int parse_sort(const struct arguments *a, struct alloc_shape *shape)
{
    const char *text = value(a, "sort"), *name = text;
    shape->sort = alloc_column_usual(shape->view);
    if (!text)
        return -1;
    if (*name == '+' || *name == '-')
        shape->order = *name++ == '+' ? TABLE_LEAST_FIRST : TABLE_MOST_FIRST;
    if (!strcmp(name, "name")) {
        shape->sort = alloc_column_name(shape->group);
        return -1;
    }
    for (unsigned i = 0; i < ALLOC_COLUMNS; i++)
        if (!strcmp(name, alloc_columns[i].name) && alloc_column_has(shape->view, shape->group, i)) {
            shape->sort = i;
            return -1;
        }
    return refuse_sort(shape, text);
}

/* Combinations that have no meaning. */
static int refuse(const struct request *q, const struct arguments *a)
{
    static const char *const not_with_text[] = {"by", "sort", "top", "json", "interval", NULL};
    const struct command *c = &command_sys_allocinfo;
    if (a->n_rest > ALLOC_MOMENTS)
        return command_misuse(c, "two files at most, not also %s", a->rest[ALLOC_MOMENTS]);
    if (a->n_rest == 2 && !strcmp(a->rest[0], "-") && !strcmp(a->rest[1], "-"))
        return command_misuse(c, "standard input can be one of the two files");
    for (int i = 0; q->show.kernel_text && not_with_text[i]; i++)
        if (value(a, not_with_text[i]))
            return command_misuse(c, "--allocinfo writes all sites as they are: leave out --%s",
                                  not_with_text[i]);
    if (q->show.kernel_text && a->n_rest == 2)
        return command_misuse(c, "--allocinfo writes one file again, not a change");
    if (value(a, "interval") && a->n_rest && (a->n_rest > 1 || !strcmp(a->rest[0], "-")))
        return command_misuse(c, "--interval reads one file again and again: not two, nor standard input");
    return -1;
}

static int parse_shape(struct request *q, const struct arguments *a)
{
    struct alloc_shape *shape = &q->show.shape;
    int group = ALLOC_BY_SITE;
    int code = option_values_parse(&command_sys_allocinfo, "by", value(a, "by"), groups, &group);
    shape->group = (enum alloc_group)group;
    shape->view = q->interval.every_ns ? ALLOC_RATE : a->n_rest == 2 ? ALLOC_CHANGE : ALLOC_NOW;
    shape->top = q->show.json ? 0 : TOP_DEFAULT;
    shape->seconds = 1;
    q->show.group = option_values_name(groups, group);
    if (code < 0)
        code = option_values_parse_top(&command_sys_allocinfo, value(a, "top"), &shape->top);
    if (code < 0)
        code = parse_sort(a, shape);
    return code;
}

static int parse(struct request *q, int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    *q = (struct request){.show = {.style = terminal_style(stdout)}};
    int code = command_parse(&command_sys_allocinfo, argc, argv, false, &a);
    if (code >= 0)
        return code;
    q->show.json = value(&a, "json") != NULL;
    q->show.kernel_text = value(&a, "allocinfo") != NULL;
    q->paged = !value(&a, "no-pager");
    code = intervals_parse(&q->interval, &command_sys_allocinfo, &a);
    if (code < 0)
        code = refuse(q, &a);
    if (code < 0)
        code = parse_shape(q, &a);
    if (code >= 0)
        return code;
    for (; q->n_files < a.n_rest; q->n_files++)
        q->files[q->n_files] = a.rest[q->n_files];
    if (value(&a, "where") && alloc_query_parse(&q->query, value(&a, "where"), &e))
        return command_misuse(&command_sys_allocinfo, "--where: %s", e.text);
    q->show.query = q->query;
    return -1;
}

/* ---- work ---- */

/* -1, or the exit code after a line. */
static int read_one(struct allocinfo_reading *r, struct alloc_texts *texts, const char *path)
{
    struct error e = {""};
    bool live = !path || !strcmp(path, ALLOCINFO_PATH);
    int bad = allocinfo_read(&r->info, texts, path, &e);
    r->source = !path ? ALLOCINFO_PATH : strcmp(path, "-") ? path : "standard input";
    if (!bad)
        return -1;
    return command_fail(live && (bad == -EOPNOTSUPP || bad == -EACCES) ? EXIT_IMPOSSIBLE : EXIT_FAILED, "%s",
                        e.text);
}

static int show_once(struct request *q)
{
    struct allocinfo_reading of[ALLOC_MOMENTS] = {{.source = NULL}};
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct buf notes = BUF_INIT;
    bool two = q->n_files == 2;
    int code = two ? read_one(&of[ALLOC_BEFORE], &texts, q->files[0]) : -1;
    if (code < 0)
        code = read_one(&of[ALLOC_AFTER], &texts, q->files[two]);
    if (code < 0) {
        struct sink out = pager_sink(q->paged);
        q->show.time_ns = q->n_files ? 0 : clock_ns(CLOCK_REALTIME);
        allocinfo_view_write(&out, &q->show, &texts, two ? &of[ALLOC_BEFORE] : NULL, &of[ALLOC_AFTER],
                             &notes);
        code = pager_written(&out, EXIT_DONE);
        for (int i = two ? ALLOC_BEFORE : ALLOC_AFTER; i < ALLOC_MOMENTS; i++)
            allocinfo_view_note_losses(&notes, &of[i]);
        command_notes(&notes);
    }
    for (int i = 0; i < ALLOC_MOMENTS; i++)
        allocinfo_release(&of[i].info);
    alloc_texts_release(&texts);
    return code;
}

/* Losses are said when there are others than before. */
static void note_new_losses(struct buf *notes, const struct allocinfo_reading *r, uint64_t *said)
{
    uint64_t lost = r->info.bad_lines * 2 + r->info.cut;
    if (lost != *said)
        allocinfo_view_note_losses(notes, r);
    *said = lost;
}

/* Readings one after the other. */
struct series {
    struct request *q;
    struct allocinfo_reading of[2];
    int now;
    struct alloc_texts texts;
    struct sink out;
    uint64_t said;
};

static int look(void *arg, uint64_t began_ns, uint64_t elapsed_ns)
{
    struct series *s = arg;
    struct allocinfo_view *show = &s->q->show;
    s->now = !s->now;
    struct buf notes = BUF_INIT;
    struct allocinfo_reading *before = &s->of[!s->now], *after = &s->of[s->now];
    allocinfo_release(&after->info);
    int code = read_one(after, &s->texts, s->q->files[0]);
    if (code >= 0)
        return code;
    if (elapsed_ns) {
        show->elapsed_ns = elapsed_ns;
        show->began_ns = began_ns;
        show->shape.seconds = (double)elapsed_ns / SECOND_NS;
        show->time_ns = clock_ns(CLOCK_REALTIME);
        allocinfo_view_write(&s->out, show, &s->texts, before, after, &notes);
    }
    note_new_losses(&notes, after, &s->said);
    command_notes(&notes);
    return sink_finish(&s->out) ? EXIT_DONE : -1;
}

static int show_series(struct request *q)
{
    struct series s = {.q = q, .texts = {.bytes = BUF_INIT}, .out = sink_to_file(stdout)};
    q->show.line = true;
    int code = intervals_run(&q->interval, look, &s);
    for (int i = 0; i < 2; i++)
        allocinfo_release(&s.of[i].info);
    alloc_texts_release(&s.texts);
    return command_written(&s.out, code);
}

static int run(int argc, char **argv)
{
    struct request q;
    int code = parse(&q, argc, argv);
    if (code < 0)
        code = q.interval.every_ns ? show_series(&q) : show_once(&q);
    query_free(q.query);
    return code;
}
