/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys numamove`: pages that are migrated, and tasks that are moved between nodes. */
#include "bpf/numamove.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "collect/process/proc.h"
#include "sys/kernel_enums.h"
#include "sys/resolver.h"
#include "sys/session.h"

enum column {
    REASON,
    PID,
    COMM,
    CONTAINER,
    OWNER_PID,
    OWNER,
    FROM,
    TO,
    CALLS,
    PAGES,
    MOVED,
    FAILED,
    PINNED,
    WRITEBACK,
    OTHER,
    NO_MEMORY,
    HUGE,
    HUGE_FAILED,
    SPLIT,
    TASKS,
    DURATION,
    LONGEST,
    HISTOGRAM
};

#define BIT(column) (1ull << (column))

static const struct table_column columns[] = {
    [REASON] = {"reason", TABLE_PLAIN, TABLE_TEXT},
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [OWNER_PID] = {"owner_pid", TABLE_PLAIN, TABLE_WHOLE, .drop_rank = 5},
    [OWNER] = {"owner", TABLE_PLAIN, TABLE_TEXT},
    [FROM] = {"from_node", TABLE_PLAIN, TABLE_WHOLE, "from"},
    [TO] = {"to_node", TABLE_PLAIN, TABLE_WHOLE, "to"},
    [CALLS] = {"calls", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 4},
    [PAGES] = {"pages", TABLE_COUNT, TABLE_WHOLE},
    [MOVED] = {"moved", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 7},
    [FAILED] = {"failed_pages", TABLE_COUNT, TABLE_WHOLE, "failed"},
    [PINNED] = {"pinned_pages", TABLE_COUNT, TABLE_WHOLE, "pinned", .hide_if_empty = true, .drop_rank = 6},
    [WRITEBACK] = {"writeback_pages", TABLE_COUNT, TABLE_WHOLE, "writeback", .hide_if_empty = true,
                   .drop_rank = 8},
    [OTHER] = {"other_failed_pages", TABLE_COUNT, TABLE_WHOLE, "other_failed", .hide_if_empty = true,
               .drop_rank = 9},
    [NO_MEMORY] = {"no_memory", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 10},
    [HUGE] = {"huge_pages", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 11},
    [HUGE_FAILED] = {"failed_huge_pages", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 12},
    [SPLIT] = {"split_huge_pages", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 13},
    [TASKS] = {"tasks", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 2},
    [DURATION] = {"duration", TABLE_DURATION, TABLE_WHOLE},
    [LONGEST] = {"longest", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 3, .merge_largest = true},
    [HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
};

struct own {
    struct kernel_enums reasons; /* the kernel's own words, for reasons that have none here */
};

static void release(struct sys_session *s)
{
    struct own *o = s->own;
    if (o)
        kernel_enums_release(&o->reasons);
    free(o);
    s->own = NULL;
}

#define NODE_FOLDER        "/sys/devices/system/node"
#define CPU_LIST_BYTES_MAX 65536u

/* "0-3,8": the CPUs of a node. */
static void add_cpus(int16_t *nodes, const char *list, int node)
{
    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long cpu = first; cpu <= last && cpu < NUMAMOVE_CPUS_MAX; cpu++)
            nodes[cpu] = (int16_t)node;
        at = end + (*end == ',');
    }
}

/* The events of the scheduler tell CPUs; those by name tell nodes, too. */
static void find_nodes(struct sys_session *s)
{
    int16_t *nodes = sys_variable(s, "node_of_cpu", NUMAMOVE_CPUS_MAX * sizeof(*nodes));
    DIR *folder = opendir(NODE_FOLDER);
    for (unsigned cpu = 0; cpu < NUMAMOVE_CPUS_MAX; cpu++)
        nodes[cpu] = NUMAMOVE_NO_NODE;
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        struct buf path = BUF_INIT, list = BUF_INIT;
        int node;
        buf_printf(&path, NODE_FOLDER "/%s/cpulist", entry->d_name);
        if (sscanf(entry->d_name, "node%d", &node) == 1 &&
            !file_read(buf_str(&path), CPU_LIST_BYTES_MAX, &list))
            add_cpus(nodes, buf_str(&list), node);
        buf_release(&list);
        buf_release(&path);
    }
    if (folder)
        closedir(folder);
}

static int ready(struct sys_session *s, struct error *e)
{
    (void)e;
    find_nodes(s);
    if (!s->own) {
        struct own *o = s->own = mem_alloc(sizeof(*o));
        kernel_enums_load(&o->reasons, "migrate_reason", "MR_");
    }
    return 0;
}

/* A system call names a process by the number of any of its threads. The process of one that has ended is not known. */
static void merge_key(struct sys_session *s, void *data)
{
    struct numamove_key *key = data;
    struct proc_status status;
    struct buf name = BUF_INIT;
    (void)s;
    if (key->owner.kind != NUMAMOVE_NUMBER || !proc_status((pid_t)key->owner.pid, &status))
        return;
    proc_name(status.tgid, &name);
    if (name.len) {
        key->owner.kind = NUMAMOVE_PROCESS;
        key->owner.pid = (uint32_t)status.tgid;
        strncpy(key->owner.comm, buf_str(&name), sizeof(key->owner.comm) - 1);
    }
    buf_release(&name);
}

static void add(void *sum, const void *value)
{
    struct numamove_value *a = sum;
    const struct numamove_value *v = value;
    a->calls += v->calls;
    a->timed += v->timed;
    a->pages += v->pages;
    a->failed += v->failed;
    a->huge += v->huge;
    a->huge_failed += v->huge_failed;
    a->split += v->split;
    a->pinned += v->pinned;
    a->writeback += v->writeback;
    a->no_memory += v->no_memory;
    a->tasks += v->tasks;
    a->duration_ns += v->duration_ns;
    a->longest_ns = v->longest_ns > a->longest_ns ? v->longest_ns : a->longest_ns;
}

static void name_reason(const struct sys_session *s, struct table *t, uint32_t reason)
{
    static const char *const names[NUMAMOVE_REASONS] = {
        [NUMAMOVE_COMPACTION] = "compaction",
        [NUMAMOVE_MEMORY_FAILURE] = "memory failure",
        [NUMAMOVE_HOTPLUG] = "memory hotplug",
        [NUMAMOVE_SYSCALL] = "syscall",
        [NUMAMOVE_CPUSET] = "cpuset",
        [NUMAMOVE_MBIND] = "mbind",
        [NUMAMOVE_BALANCING] = "NUMA balancing",
        [NUMAMOVE_CONTIGUOUS] = "contiguous range (CMA)",
        [NUMAMOVE_PIN] = "long-term pin",
        [NUMAMOVE_DEMOTION] = "memory tiering",
        [NUMAMOVE_DAMON] = "DAMON",
        [NUMAMOVE_TASK_MOVED] = "task moved",
        [NUMAMOVE_TASK_SWAPPED] = "task swapped",
        [NUMAMOVE_TASK_STUCK] = "task stuck",
    };
    const struct own *o = s->own;
    uint32_t number = reason - NUMAMOVE_UNNAMED;
    struct buf b = BUF_INIT;
    if (reason < NUMAMOVE_REASONS)
        buf_addstr(&b, names[reason]);
    else if (number < KERNEL_ENUMS_VALUES_MAX && o->reasons.names[number])
        buf_addstr(&b, o->reasons.names[number]);
    else
        buf_printf(&b, "reason %u", number);
    table_text(t, REASON, buf_str(&b));
    buf_release(&b);
}

static void name_owner(struct table *t, const struct numamove_owner *owner)
{
    if (owner->kind == NUMAMOVE_SHARED)
        table_text(t, OWNER, "(shared)");
    if (owner->kind != NUMAMOVE_PROCESS)
        return;
    table_whole(t, OWNER_PID, owner->pid);
    if (owner->comm[0])
        table_text(t, OWNER, owner->comm);
}

static void name_row(const struct sys_session *s, struct table *t, const struct numamove_key *key)
{
    uint32_t parts = s->settings.config.parts;
    name_reason(s, t, key->reason);
    if (parts & NUMAMOVE_BY_PROCESS)
        table_whole(t, PID, key->pid);
    if (parts & (NUMAMOVE_BY_PROCESS | NUMAMOVE_BY_COMM))
        table_text(t, COMM, key->comm);
    if (parts & NUMAMOVE_BY_OWNER)
        name_owner(t, &key->owner);
    if (key->from != NUMAMOVE_NO_NODE)
        table_whole(t, FROM, (uint64_t)key->from);
    if (key->to != NUMAMOVE_NO_NODE)
        table_whole(t, TO, (uint64_t)key->to);
}

#define PAGE 4096u

/* Which call the failures and the time belong to is not known of pages that several rows share. */
static void add_calls(const struct sys_session *s, struct table *t, const struct numamove_value *v)
{
    table_whole(t, CALLS, v->calls);
    table_whole(t, FAILED, v->failed);
    if (!(s->lacking & BIT(PINNED))) {
        table_whole(t, PINNED, v->pinned);
        table_whole(t, WRITEBACK, v->writeback);
        table_whole(t, OTHER, v->failed - v->pinned - v->writeback);
        table_whole(t, NO_MEMORY, v->no_memory);
    }
    table_whole(t, HUGE, v->huge);
    table_whole(t, HUGE_FAILED, v->huge_failed);
    table_whole(t, SPLIT, v->split);
    if (!v->timed)
        return;
    table_whole(t, DURATION, v->duration_ns);
    table_whole(t, LONGEST, v->longest_ns);
}

static void row(struct sys_session *s, struct table *t, const void *data, const void *sum)
{
    struct numamove_key key = {0};
    const struct numamove_value *v = sum;
    memcpy(&key, data, s->settings.part->key_bytes);
    table_row(t);
    name_row(s, t, &key);
    if (key.reason >= NUMAMOVE_REASONS_OF_PAGES && key.reason < NUMAMOVE_REASONS) {
        table_whole(t, TASKS, v->tasks);
        return;
    }
    table_whole(t, PAGES, v->pages);
    table_whole(t, MOVED, v->pages * PAGE);
    if (v->calls)
        add_calls(s, t, v);
}

static void add_under_way(void *arg, const void *key, const void *value)
{
    const struct numamove_task *task = value;
    uint64_t *under_way = arg;
    (void)key;
    *under_way += task->depth;
}

static void count_rest(struct sys_session *s)
{
    sys_each(s, "under_way", add_under_way, &s->counted[NUMAMOVE_UNDER_WAY]);
}

#define NODES (BIT(FROM) | BIT(TO))

static const struct sys_part parts[] = {
    {"process", "the process that moves them, and the process that they belong to",
     NUMAMOVE_BY_PROCESS | NUMAMOVE_BY_OWNER, sizeof(struct numamove_key),
     BIT(PID) | BIT(COMM) | BIT(CONTAINER) | BIT(OWNER_PID) | BIT(OWNER), 0,
     .names = BIT(REASON) | NODES | BIT(PID) | BIT(COMM) | BIT(OWNER_PID) | BIT(OWNER)},
    {"owner", "the process that they belong to", NUMAMOVE_BY_OWNER, offsetof(struct numamove_key, pid),
     BIT(OWNER_PID) | BIT(OWNER), 0, .names = BIT(REASON) | NODES | BIT(OWNER_PID) | BIT(OWNER)},
    {"comm", "the name of the process that moves them", NUMAMOVE_BY_COMM, sizeof(struct numamove_key),
     BIT(COMM), 0, .names = BIT(REASON) | NODES | BIT(COMM)},
    {"reason", "the reason, and the nodes", 0, offsetof(struct numamove_key, owner), 0, 0,
     .names = BIT(REASON) | NODES},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_counted counted[] = {
    {NUMAMOVE_UNTIMED,
     "call{s} had begun before the tool: {its|their} pages are counted, {its|their} time is not", "untimed",
     false},
    {NUMAMOVE_UNDER_WAY, "call{s} had not ended at the end, not counted", "under_way", false},
    {0, NULL, NULL, false},
};

#define PAGES_ARGUMENTS     "succeeded,failed,thp_succeeded,thp_failed,thp_split,large_folio_split,mode,reason"
#define PAGES_ARGUMENTS_6_6 "succeeded,failed,thp_succeeded,thp_failed,thp_split,mode,reason"

/* Kernels without NUMA balancing need not have them. */
#define TASKS_BY_POSITION(method)                                                                            \
    {#method "_move", "sched_move_numa", "tsk,src_cpu,dst_cpu", "trace_event_raw_sched_move_numa"},          \
        {#method "_swap", "sched_swap_numa", "src_tsk,src_cpu,dst_tsk,dst_cpu",                              \
         "trace_event_raw_sched_numa_pair_template"},                                                        \
    {                                                                                                        \
#method "_stick", "sched_stick_numa", "src_tsk,src_cpu,dst_tsk,dst_cpu",                             \
            "trace_event_raw_sched_numa_pair_template"                                                       \
    }
#define BY_FUNCTIONS(name_, method, end, arguments)                                                          \
    {                                                                                                        \
        .name = #name_, .attach = SYS_ATTACH({.program = #name_ "_begin"}, {.program = #name_ "_moved"},     \
                                             {.program = #name_ "_mapped"}, {.program = end},                \
                                             {#method "_told", "mm_migrate_pages", arguments, NULL},         \
                                             TASKS_BY_POSITION(method))                                      \
    }
#define UNTOLD                                                                                               \
    .lacks = "the nodes of pages, the owner of pages that no system call and no page fault asks for, "       \
             "why pages fail",                                                                               \
    .lacking = BIT(PINNED) | BIT(WRITEBACK) | BIT(OTHER) | BIT(NO_MEMORY)
#define BY_POSITION(name_, method, arguments)                                                                \
    {                                                                                                        \
        .name = #name_, UNTOLD,                                                                              \
        .attach =                                                                                            \
            SYS_ATTACH({#method "_begin", "mm_migrate_pages_start", "mode,reason", NULL},                    \
                       {#method "_end", "mm_migrate_pages", arguments, NULL}, TASKS_BY_POSITION(method))     \
    }

static const struct sys_attach_method methods[] = {
    BY_FUNCTIONS(fentry, btf, "fexit_end", PAGES_ARGUMENTS),
    BY_FUNCTIONS(fentry, btf, "fexit_end", PAGES_ARGUMENTS_6_6),
    BY_FUNCTIONS(kprobe, raw, "kretprobe_end", PAGES_ARGUMENTS),
    BY_FUNCTIONS(kprobe, raw, "kretprobe_end", PAGES_ARGUMENTS_6_6),
    BY_POSITION(tp_btf, btf, PAGES_ARGUMENTS),
    BY_POSITION(tp_btf, btf, PAGES_ARGUMENTS_6_6),
    BY_POSITION(raw_tp, raw, PAGES_ARGUMENTS),
    BY_POSITION(raw_tp, raw, PAGES_ARGUMENTS_6_6),
    {.name = "tp",
     UNTOLD,
     .attach = SYS_ATTACH({.program = "tp_begin"}, {.program = "tp_end"},
                          {.program = "tp_move", .if_type = "trace_event_raw_sched_move_numa"},
                          {.program = "tp_swap", .if_type = "trace_event_raw_sched_numa_pair_template"},
                          {.program = "tp_stick", .if_type = "trace_event_raw_sched_numa_pair_template"})},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys numamove",
    "show each second which processes move pages, whose, between which nodes, and how long it takes",
    "allium sys numamove --by reason --hist --duration 1m --interval 1m",
    "show the time of each migration, by its reason",
    "allium sys numamove --by owner --where 'reason:NUMA*' --interval 10s",
    "show the processes whose pages NUMA balancing moves",
    NULL,
};

static const struct sys_measure measure = {.doc = "the duration of each migration", .column = HISTOGRAM};

static const char *const questions[] = {
    "Which processes' pages are moved between NUMA nodes, by whom, why, and how long does it take?",
    "Which pages could not be moved, and why? (--by reason)",
    "Which tasks are moved from node to node? (--by owner)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "each begin and end of a migration",
    .event_ns = 940,
    .measured = "the programs alone, by the kernel\'s clock; tp_btf, Linux 6.18 in a virtual machine",
    .unseen = "pages that devices move, and mappings that are copied when a program writes to them",
};

SYS_OBJECT_OF(numamove);

const struct sys_tool sys_numamove = {
    .name = "numamove",
    .summary = "show the pages that are migrated, and the tasks that are moved between nodes",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(numamove),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = PAGES,
    .measure = &measure,
    .container = CONTAINER,
    .interval_ns = 1000000000u,
    .parts = parts,
    .counted = counted,
    .key_bytes = sizeof(struct numamove_key),
    .value_bytes = sizeof(struct numamove_value),
    .merge_key = merge_key,
    .add = add,
    .row = row,
    .ready = ready,
    .count_rest = count_rest,
    .release = release,
};
