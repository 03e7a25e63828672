/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys memleak`: objects that a process has allocated and not freed, by the code that allocated them. */
#include "bpf/memleak.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "sys/bpf_object.h"
#include "sys/resolver.h"
#include "sys/session.h"
#include "sys/tools/memleak/memleak_live.h"
#include "sys/tools/memleak/memleak_processes.h"

#define PERIOD_DEFAULT  (512u << 10)
#define PERIOD_MOST     (1u << 30)
#define OBJECTS_DEFAULT (1u << 18)
#define OBJECTS_MOST    (1u << 28)

#define MAX_COST_DEFAULT 10

#define BIT(column) (1ull << (column))

static const struct table_column columns[MEMLEAK_COLUMNS] = {
    [MEMLEAK_SITE] = {"site", TABLE_PLAIN, TABLE_TEXT},
    [MEMLEAK_PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [MEMLEAK_COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [MEMLEAK_LIVE] = {"live", TABLE_BYTES, TABLE_ESTIMATE},
    [MEMLEAK_OBJECTS] = {"live_objects", TABLE_COUNT, TABLE_ESTIMATE, .drop_rank = 2},
    [MEMLEAK_GROWTH] = {"growth", TABLE_BYTES, TABLE_SIGNED, .hide_if_empty = true, .drop_rank = 3},
    [MEMLEAK_OLDEST] = {"oldest", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 4, .merge_largest = true},
    [MEMLEAK_SIZES] = {"sizes", TABLE_BYTES, TABLE_HISTOGRAM},
    [MEMLEAK_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

static const struct sys_part parts[] = {
    {"stack", "the whole stack, unwound by the rules of the files", MEMLEAK_BY_STACK, 0,
     BIT(MEMLEAK_PID) | BIT(MEMLEAK_STACK), SYS_STACK_USER, .spaces = true, .samples = true,
     .names = BIT(MEMLEAK_PID) | BIT(MEMLEAK_STACK)},
    {"fp-stack", "the whole stack by frame pointers, which costs less", MEMLEAK_BY_STACK, 0,
     BIT(MEMLEAK_PID) | BIT(MEMLEAK_STACK), SYS_STACK_USER, .spaces = true,
     .names = BIT(MEMLEAK_PID) | BIT(MEMLEAK_STACK)},
    {"site", "the call that allocates", MEMLEAK_BY_SITE, 0, BIT(MEMLEAK_PID) | BIT(MEMLEAK_SITE),
     .spaces = true, .names = BIT(MEMLEAK_PID) | BIT(MEMLEAK_SITE)},
    {"process", "the process", MEMLEAK_BY_PROCESS, 0, BIT(MEMLEAK_PID) | BIT(MEMLEAK_COMM),
     .names = BIT(MEMLEAK_PID) | BIT(MEMLEAK_COMM)},
    {"comm", "the name of the process", MEMLEAK_BY_COMM, 0, BIT(MEMLEAK_COMM), .names = BIT(MEMLEAK_COMM)},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_option options[] = {
    {"kernel", NULL, "follow the kernel's memory instead, as without a process: see --kernel --help", 0},
    {"period", "SIZE", "follow one object for each SIZE bytes on average (512K); 1: every object", 0},
    {"objects", "N", "follow at most N live objects at a time (256K)", 0},
    {"older-than", "AGE", "show only objects of at least this age", 0},
    {"even-observed", NULL, "observe a process even if allium's agent follows its memory already", 0},
    {"max-cost", "PERCENT",
     "remove the probes if they take more of the processes' CPU time for 5 s (10); 0: never", 0},
    {"children", NULL, "observe processes that observed ones fork, too", 0},
    {"functions", "NAMES",
     "observe [PATH:]alloc=NAME,free=NAME[,size=arg1[*arg2]] in place of malloc(3) and its family", 0},
    {NULL},
};

static const struct sys_counted counted[] = {
    {MEMLEAK_FREED_BEFORE, "free{s} of objects from before", "frees_from_before", false},
    {MEMLEAK_REUSED, "live object{s} whose address was returned again: {its|their} free was not seen",
     "frees_not_seen", true},
    {MEMLEAK_CALLS_FULL, "call{s} had no room: too many threads", "lost_calls", true},
    {MEMLEAK_OF_EXEC, "live object{s} ended when the process executed another program", "objects_of_exec",
     false},
    {MEMLEAK_NESTED, "call{s} within the allocator, counted once", "nested_calls", false},
    {MEMLEAK_NOTICES_LOST, "process{es} {was|were} not noticed in time", "lost_processes", true},
    {MEMLEAK_UNREAD, "result{s} could not be read", "results_unread", true},
    {0, NULL, NULL, false},
};

#define OF_PROCESSES                                                                                         \
    {"memleak_frees", .by_hand = true}, {"memleak_leaves", .by_hand = true},                                 \
        {"memleak_loads", .by_hand = true}, {"memleak_execs", "sched_process_exec", "p"},                    \
        {"memleak_forks", "sched_process_fork", "parent,child"},                                             \
        {"memleak_exits", "sched_process_exit", "p"},                                                        \
    {                                                                                                        \
        "memleak_lists", .by_hand = true                                                                     \
    }

static const struct sys_attach_method methods[] = {
    {.name = "session",
     .attach =
         SYS_ATTACH({"memleak_session", .by_hand = true}, {"memleak_enters", .by_hand = true}, OF_PROCESSES)},
    {.name = "uprobe",
     .attach =
         SYS_ATTACH({"memleak_enters", .by_hand = true}, {"memleak_returns", .by_hand = true}, OF_PROCESSES)},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys memleak -p 4711 --interval 10s",
    "show every ten seconds which code of process 4711 has memory that it did not free",
    "allium sys memleak --period 1 --by site -- ./program",
    "follow every object of a program, and show at its end what it did not free",
    NULL,
};

static const struct sys_measure measure = {.doc = "the requested bytes of live objects",
                                           .column = MEMLEAK_SIZES};

/* ---- before the programs are loaded ---- */

static int read_size(struct sys_session *s, const char *name, uint64_t most, uint64_t *out, struct error *e)
{
    const char *text = sys_option(s, name);
    if (text && (units_parse_size(text, out) || !*out || *out > most))
        return error_set(e, EINVAL, "invalid --%s '%s': use a number such as 512K", name, text);
    return 0;
}

static int read_percent(struct sys_session *s, double *out, struct error *e)
{
    const char *text = sys_option(s, "max-cost");
    char *end = NULL;
    const double percent = text ? strtod(text, &end) : *out;
    if (text && (end == text || *end || !(percent >= 0 && percent <= 100)))
        return error_set(e, EINVAL, "invalid --max-cost '%s': use a percentage such as 10", text);
    *out = percent;
    return 0;
}

/* The fractions of log2(1 + i / steps). */
static void fill_logarithms(uint32_t *table)
{
    for (uint32_t i = 0; i <= MEMLEAK_LOG_STEPS; i++)
        table[i] = (uint32_t)lround(log2(1 + (double)i / MEMLEAK_LOG_STEPS) * (1u << MEMLEAK_LOG_BITS));
}

static int ready(struct sys_session *s, struct error *e)
{
    uint64_t *period = sys_variable(s, "period", sizeof(*period)), bytes = PERIOD_DEFAULT,
             objects = OBJECTS_DEFAULT, older_ns = 0;
    double max_cost = MAX_COST_DEFAULT;
    uint32_t *table = sys_variable(s, "log_table", (MEMLEAK_LOG_STEPS + 1) * sizeof(*table));
    bool *children = sys_variable(s, "follow_children", sizeof(*children));
    bool *filters = sys_variable(s, "follow_filters", sizeof(*filters));
    const char *older = sys_option(s, "older-than");
    const uint32_t by = s->settings.config.filters;
    int bad = read_size(s, "period", PERIOD_MOST, &bytes, e);
    bad = bad ? bad : read_size(s, "objects", OBJECTS_MOST, &objects, e);
    if (!bad && older && units_parse_duration(older, &older_ns))
        bad = error_set(e, EINVAL, "invalid --older-than '%s': use a time such as 10s", older);
    bad = bad ? bad : read_percent(s, &max_cost, e);
    if (!bad && by & SYS_FILTER_TID)
        bad = error_set(e, EINVAL, "sys memleak follows whole processes: use --pid in place of --tid");
    if (bad)
        return bad;
    *period = bytes;
    *children = sys_option(s, "children") != NULL;
    *filters = by && !(by & (SYS_FILTER_TGID | SYS_FILTER_TID));
    fill_logarithms(table);
    if (bpf_program__autoload(bpf_object__find_program_by_name(s->object, "memleak_session"))) {
        uprobe_multi_ready(s->object, "memleak_session", UPROBE_MULTI_SESSION);
        uprobe_multi_ready(s->object, "memleak_enters", UPROBE_MULTI_ENTRY);
        uprobe_multi_ready(s->object, "memleak_frees", UPROBE_MULTI_ENTRY);
        uprobe_multi_ready(s->object, "memleak_leaves", UPROBE_MULTI_ENTRY);
        uprobe_multi_ready(s->object, "memleak_loads", UPROBE_MULTI_ENTRY);
    }
    bpf_map__set_max_entries(bpf_object__find_map_by_name(s->object, "live"), (uint32_t)objects);
    return memleak_open(s, &(struct memleak_settings){bytes, older_ns, max_cost}, e);
}

static void count_rest(struct sys_session *s)
{
    const struct memleak_own *o = s->own;
    s->counted[MEMLEAK_OF_EXEC] = o->of_exec;
}

static const char *const questions[] = {
    "Which code of a process allocates memory and does not free it?",
    "What of it is old? (--older-than)",
    "Which calls hold most? (--by site)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "a call of malloc() or free()",
    .event_ns = 530,
    .measured = "rows by site, one sample in 512 KiB; session, Linux 6.18 in a busy virtual machine",
    .unseen = "memory that was allocated before the tool began, and what a program takes by mmap() itself",
};

SYS_OBJECT_OF(memleak);
extern const struct sys_tool sys_memleak_kernel;

/* Without a process the tool shows the kernel's memory. With --from, --kernel tells which kind of recording it is. */
static const struct sys_tool *variant(int argc, char **argv)
{
    static const struct {
        const char *name;
        char letter;
    } choices[] = {{"help", 'h'}, {"explain"}, {"pid", 'p'}, {"uid", 'u'}, {"comm"}, {"cgroup"}, {"from"}};
    bool chosen = false;
    for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++)
        chosen = chosen || sys_tool_is_given(argc, argv, choices[i].name, choices[i].letter);
    for (int i = 1; i < argc; i++)
        chosen = chosen || !strcmp(argv[i], "--");
    return chosen && !sys_tool_is_given(argc, argv, "kernel", 0) ? &sys_memleak : &sys_memleak_kernel;
}

const struct sys_tool sys_memleak = {
    .name = "memleak",
    .summary = "show memory that processes allocated and did not free, by the code that allocated it",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(memleak),
    .methods = methods,
    .columns = columns,
    .n_columns = MEMLEAK_COLUMNS,
    .weight = MEMLEAK_LIVE,
    .measure = &measure,
    .parts = parts,
    .options = options,
    .counted = counted,
    .ready = ready,
    .begin = memleak_begin,
    .step = memleak_step,
    .gather = memleak_gather,
    .rest = memleak_rest,
    .count_rest = count_rest,
    .release = memleak_release,
    .attaches_later = true,
    .observes_command = true,
    .variant = variant,
};
