/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_overview.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "cli/intervals.h"
#include "cli/option_values.h"
#include "cli/pager.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "collect/kernel/overview_read.h"
#include "collect/process/processes.h"
#include "sys/tool.h"
#include "view/table/overview_view.h"

#define SECOND_NS    UINT64_C(1000000000)
#define ASK_ALL_MS   300u  /* of one screen */
#define ASK_MAPS_MS  2000u /* with --pid: of that process alone */
#define CLEAR_SCREEN "\033[H\033[2J"

#define TOP_LISTS    6
#define TOP_BRIEF    100 /* more rows than a terminal has */
#define TOP_MAPPINGS 20

struct overview_screen {
    /* without an interval: once; then the duration is the time that rates are measured */
    struct intervals intervals;
    uint32_t top; /* 0: all */
    enum overview_sort sort;
    bool pss, json, paged, all;
    int pid; /* 0: the machine */
};

static const struct word orders[] = {
    {"memory", OVERVIEW_BY_MEMORY}, {"rss", OVERVIEW_BY_RSS},
    {"swap", OVERVIEW_BY_SWAP},     {"anon", OVERVIEW_BY_ANON},
    {"file", OVERVIEW_BY_FILE},     {"shmem", OVERVIEW_BY_SHMEM},
    {"faults", OVERVIEW_BY_FAULTS}, {NULL, 0},
};

static void write_machine(const struct overview_screen *o, struct sink *out, const struct overview *m)
{
    struct text_style style = terminal_style(stdout);
    if (o->json) {
        overview_json_write(out, m, o->top);
        return;
    }
    if (o->intervals.every_ns && !style.file)
        sink_text(out, CLEAR_SCREEN);
    if (!o->all)
        overview_brief_write(out, m, terminal_rows(stdout) - 1, &style);
    else
        overview_write(out, m, o->top, &style);
}

static bool has_tool(const char *name)
{
    return sys_tool_find(name) != NULL;
}

/* One screen of the machine. */
static int show_machine(const struct overview_screen *o, struct overview_reader *l, struct sink *out)
{
    const struct overview_wish wish = {
        .sort = o->sort, .top = o->top, .pss = o->pss, .ask_ms = ASK_ALL_MS, .has_tool = has_tool};
    struct overview m;
    int bad = overview_read(l, &wish, &m);
    if (!bad)
        write_machine(o, out, &m);
    overview_release(&m);
    return bad;
}

/* Writes the screen of --pid. -ESRCH: the process does not exist. */
static int show_process(const struct overview_screen *o, struct overview_reader *l, struct sink *out)
{
    struct overview_process p;
    struct mappings maps = {0};
    struct text_style style = terminal_style(stdout);
    if (!process_read(o->pid, &p))
        return -ESRCH;
    l->asker.each_ms = l->asker.left_ms = ASK_MAPS_MS;
    process_query_maps(&l->asker, &p, &maps);
    mappings_sort(&maps);
    if (o->json)
        mappings_json_write(out, clock_ns(CLOCK_REALTIME), &p, &maps, o->top);
    else
        mappings_write(out, &p, &maps, o->top, &style);
    mappings_release(&maps);
    free(p.command);
    return 0;
}

static int failed(const struct overview_screen *o, int bad)
{
    return o->pid ? command_fail(EXIT_FAILED, "there is no process %d", o->pid)
                  : command_fail(EXIT_FAILED, "cannot read /proc: %s; is it mounted?", strerror(-bad));
}

static int show(const struct overview_screen *o, struct overview_reader *l, struct sink *out)
{
    return o->pid ? show_process(o, l, out) : show_machine(o, l, out);
}

static int show_once(const struct overview_screen *o, struct overview_reader *l)
{
    uint64_t wait_ns = o->intervals.duration_ns ? o->intervals.duration_ns : SECOND_NS;
    struct timespec t = {.tv_sec = (time_t)(wait_ns / SECOND_NS), .tv_nsec = (long)(wait_ns % SECOND_NS)};
    if (!o->pid) {
        overview_read_count(l);
        while (nanosleep(&t, &t) && errno == EINTR)
            ;
    }
    bool brief = !o->pid && !o->all && !o->json;
    struct sink out = pager_sink(o->paged && !o->json && !brief);
    int bad = show(o, l, &out);
    if (brief)
        sink_char(&out, '\n');
    int code = pager_written(&out, EXIT_DONE);
    return bad ? failed(o, bad) : code;
}

struct series {
    const struct overview_screen *o;
    struct overview_reader *reader;
    struct sink out;
};

/* One screen of a series; the first call counts what the rates of the first screen begin with. */
static int show_next(void *arg, uint64_t began_ns, uint64_t elapsed_ns)
{
    struct series *s = arg;
    (void)began_ns;
    if (!elapsed_ns) {
        if (!s->o->pid)
            overview_read_count(s->reader);
        return -1;
    }
    int bad = show(s->o, s->reader, &s->out);
    if (bad)
        return failed(s->o, bad);
    if (!s->o->json)
        sink_char(&s->out, '\n');
    return sink_finish(&s->out) ? EXIT_DONE : -1;
}

static int show_series(const struct overview_screen *o, struct overview_reader *l)
{
    struct series s = {o, l, sink_to_file(stdout)};
    int code = intervals_run(&o->intervals, show_next, &s);
    return command_written(&s.out, code);
}

static int parse_pid(const struct command *c, const struct arguments *a, int *pid)
{
    const char *text = command_value(c, a, "pid");
    return text ? source_parse_pid(c, text, pid) : -1;
}

static int parse(const struct command *c, const struct arguments *a, struct overview_screen *o)
{
    static const char *const not_with_pid[] = {"sort", "all", NULL};
    int sort = OVERVIEW_BY_MEMORY;
    int code = intervals_parse(&o->intervals, c, a, &(struct intervals){0});
    if (code < 0)
        code = parse_pid(c, a, &o->pid);
    if (code < 0)
        code = option_values_parse(c, "sort", command_value(c, a, "sort"), orders, &sort);
    for (int i = 0; not_with_pid[i] && code < 0 && o->pid; i++)
        if (command_value(c, a, not_with_pid[i]))
            code =
                command_misuse(c, "-p lists the mappings of one process, the largest first: leave out --%s",
                               not_with_pid[i]);
    o->top = o->pid ? TOP_MAPPINGS : TOP_LISTS;
    if (code < 0)
        code = option_values_parse_top(c, command_value(c, a, "top"), &o->top);
    if (code < 0 && a->n_rest)
        code = command_misuse(c, "options come after the name of a tool: allium sys %s ...", a->rest[0]);
    o->sort = (enum overview_sort)sort;
    o->pss = command_value(c, a, "pss") != NULL;
    o->json = command_value(c, a, "json") != NULL;
    /* A file has everything, and so has a list of a length that was asked for. */
    o->all = command_value(c, a, "all") || command_value(c, a, "top") || !terminal_rows(stdout);
    if (!o->all && !o->pid && !o->json)
        o->top = TOP_BRIEF;
    o->paged = !command_value(c, a, "no-pager");
    return code;
}

int sys_overview(const struct command *c, const struct arguments *a)
{
    struct overview_screen o = {.pid = 0};
    struct overview_reader l;
    int code = parse(c, a, &o);
    if (code >= 0)
        return code;
    overview_read_begin(&l);
    code = o.intervals.every_ns ? show_series(&o, &l) : show_once(&o, &l);
    overview_read_end(&l);
    return code;
}
