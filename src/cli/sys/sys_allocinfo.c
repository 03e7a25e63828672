/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/accounts/accounts_show.h"
#include "cli/option_values.h"
#include "cli/screen_options.h"
#include "cli/terminal.h"
#include "collect/accounts/allocinfo.h"
#include "model/accounts/allocinfo_table.h"

#define TOP_DEFAULT 20

static const struct option_doc options[] = {
    {"by", 0, "GROUP", "group rows by site (default), file, directory, module or function"},
    {"sort", 0, "COLUMN", "sort by size, calls, average, name ...; with +COLUMN in ascending order"},
    {"where", 0, "QUERY", "show only matching sites: 'dir:drivers size>1M !module:*', see allium-query(7)"},
    {"top", 0, "N", "print N rows (20, with --json all); 0: all"},
    INTERVALS_OPTIONS("read it at each INTERVAL, and print the changes per second", "stop after N intervals"),
    {"allocinfo", 0, NULL, "print the kernel's format, version 2.0"},
    SCREEN_OPTIONS,
    {"json", 0, NULL, "print JSON, see allium-json(5)"},
    {"no-pager", 0, NULL, "print long output directly, not through $PAGER"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "sudo allium sys allocinfo",
    "show the lines of the kernel's source that hold most memory now",
    "allium sys allocinfo before after --by directory",
    "show the changes between two copies that were saved with cat",
    "sudo allium sys allocinfo --interval 5s --where 'module:nf_*'",
    "show the growth per second of some modules",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_sys_allocinfo = {
    .name = "sys allocinfo",
    .usage = "[FILE [NEWER]] [--by GROUP] [--sort COLUMN] [--where QUERY] [--top N] [--interval INTERVAL] "
             "[--count N] "
             "[--duration DURATION] [--allocinfo] " SCREEN_USAGE " [--json] [--no-pager]",
    .summary = "show the memory that each line of the kernel's source holds, from /proc/allocinfo or a copy",
    .examples = examples,
    .options = options,
    .run = run,
};

static const struct word groups[] = {{"site", ACCOUNT_BY_PLACE},
                                     {"file", ACCOUNT_BY_FILE},
                                     {"directory", ACCOUNT_BY_DIRECTORY},
                                     {"module", ACCOUNT_BY_MODULE},
                                     {"function", ACCOUNT_BY_MODULE_FUNCTION},
                                     {NULL, 0}};

/* ---- options; each gives -1 to go on, or the exit code ---- */

static const char *value(const struct arguments *a, const char *name)
{
    return command_value(&command_sys_allocinfo, a, name);
}

static int refuse_sort(const struct account_shape *shape, const char *text)
{
    struct buf list = BUF_INIT;
    for (unsigned i = 0; i < ALLOCINFO_COLUMNS; i++)
        if (allocinfo_column_has(shape->view, shape->group, i))
            buf_printf(&list, "%s, ", allocinfo_columns[i].name);
    int code =
        command_misuse(&command_sys_allocinfo, "unknown --sort %s: use %sor name", text, buf_str(&list));
    buf_release(&list);
    return code;
}

static int parse_sort(const struct arguments *a, struct account_shape *shape)
{
    const char *text = value(a, "sort"), *name = text;
    shape->column = allocinfo_column_usual(shape->view);
    if (!text)
        return -1;
    if (*name == '+' || *name == '-')
        shape->order = *name++ == '+' ? TABLE_LEAST_FIRST : TABLE_MOST_FIRST;
    if (!strcmp(name, "name")) {
        shape->column = allocinfo_column_name(shape->group);
        return -1;
    }
    for (unsigned i = 0; i < ALLOCINFO_COLUMNS; i++)
        if (!strcmp(name, allocinfo_columns[i].name) && allocinfo_column_has(shape->view, shape->group, i)) {
            shape->column = i;
            return -1;
        }
    return refuse_sort(shape, text);
}

/* Combinations that have no meaning. */
static int refuse(const struct accounts_show *s, const struct arguments *a)
{
    static const char *const not_with_text[] = {"by", "sort", "top", "json", "interval", NULL};
    const struct command *c = &command_sys_allocinfo;
    bool kernel_text = s->view.format == ACCOUNTS_ALLOCINFO;
    if (a->n_rest > ACCOUNT_MOMENTS)
        return command_misuse(c, "too many files: leave out %s", a->rest[ACCOUNT_MOMENTS]);
    if (a->n_rest == 2 && !strcmp(a->rest[0], "-") && !strcmp(a->rest[1], "-"))
        return command_misuse(c, "standard input can be only one of the two files");
    for (int i = 0; kernel_text && not_with_text[i]; i++)
        if (value(a, not_with_text[i]))
            return command_misuse(c, "--allocinfo writes all sites unchanged: leave out --%s",
                                  not_with_text[i]);
    if (kernel_text && a->n_rest == 2)
        return command_misuse(c, "--allocinfo takes one file: leave out the second");
    if (value(a, "interval") && a->n_rest && (a->n_rest > 1 || !strcmp(a->rest[0], "-")))
        return command_misuse(c, "--interval takes one file, which is not standard input");
    return -1;
}

static int parse_shape(struct accounts_show *s, const struct arguments *a)
{
    struct account_shape *shape = &s->view.shape;
    int group = ACCOUNT_BY_PLACE;
    int code = option_values_parse(&command_sys_allocinfo, "by", value(a, "by"), groups, &group);
    *shape = (struct account_shape){.schema = s->kind->schema,
                                    .kind = ACCOUNT_OF_KERNEL,
                                    .view = s->intervals.every_ns ? ACCOUNT_RATE
                                            : a->n_rest == 2      ? ACCOUNT_CHANGE
                                                                  : ACCOUNT_NOW,
                                    .group = (enum account_group)group,
                                    .top = s->view.format == ACCOUNTS_JSON ? 0 : TOP_DEFAULT};
    s->view.group = option_values_name(groups, group);
    if (code < 0)
        code = option_values_parse_top(&command_sys_allocinfo, value(a, "top"), &shape->top);
    if (code < 0)
        code = parse_sort(a, shape);
    s->view.order = allocinfo_columns[shape->column].name;
    return code;
}

static int parse(struct accounts_show *s, struct query **query, int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    int code = command_parse(&command_sys_allocinfo, argc, argv, false, &a);
    if (code >= 0)
        return code;
    s->view.format = value(&a, "allocinfo") ? ACCOUNTS_ALLOCINFO
                     : value(&a, "json")    ? ACCOUNTS_JSON
                                            : ACCOUNTS_SCREEN;
    s->paged = !value(&a, "no-pager");
    code = intervals_parse(&s->intervals, &command_sys_allocinfo, &a, NULL);
    if (code < 0)
        code = refuse(s, &a);
    if (code < 0)
        code = parse_shape(s, &a);
    if (code >= 0)
        return code;
    for (; s->n_sources < a.n_rest; s->n_sources++)
        s->sources[s->n_sources] = a.rest[s->n_sources];
    if (value(&a, "where") && account_query_parse_kernel(query, value(&a, "where"), &e))
        return command_misuse(&command_sys_allocinfo, "--where: %s", e.text);
    s->view.query = *query;
    return -1;
}

/* ---- work ---- */

static int read_source(const struct accounts_show *s, struct accounts_reading *r, const char *path)
{
    struct error e = {""};
    bool live = !path || !strcmp(path, ALLOCINFO_PATH);
    int bad = allocinfo_read(&r->accounts, s->texts, path, &e);
    if (bad)
        return command_fail(live && (bad == -EOPNOTSUPP || bad == -EACCES) ? EXIT_IMPOSSIBLE : EXIT_FAILED,
                            "%s", e.text);
    r->label = mem_strdup(!path ? ALLOCINFO_PATH : strcmp(path, "-") ? path : "standard input");
    return -1;
}

static int run(int argc, char **argv)
{
    static const struct accounts_kind kind = {
        .command = &command_sys_allocinfo, .schema = "allocinfo", .read_source = read_source};
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct buf notes = BUF_INIT;
    struct query *query = NULL;
    struct accounts_show s = {
        .kind = &kind, .view = {.style = terminal_style(stdout)}, .texts = &texts, .notes = &notes};
    int code = parse(&s, &query, argc, argv);
    if (code < 0)
        code = accounts_show(&s);
    command_notes(&notes);
    alloc_texts_release(&texts);
    query_free(query);
    return code;
}
