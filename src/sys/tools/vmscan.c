/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys vmscan`: what reclaim costs, and what it gives. */
#include "bpf/vmscan.h"

#include <stddef.h>

#include "base/buf.h"
#include "sys/resolver.h"
#include "sys/session.h"

enum column {
    RECLAIM,
    PID,
    COMM,
    CONTAINER,
    SHRINKER,
    TIMES,
    DURATION,
    LONGEST,
    SCANNED,
    RECLAIMED,
    EFFICIENCY,
    SCANNED_CLEAN,
    CLEAN,
    DIRTY,
    WRITEBACK,
    SCANNED_ANONYMOUS,
    ANONYMOUS,
    WRITTEN,
    ACTIVATED,
    OBJECTS_SCANNED,
    OBJECTS_FREED,
    HISTOGRAM
};

#define BIT(column) (1ull << (column))

static const struct table_column columns[] = {
    [RECLAIM] = {"reclaim", TABLE_PLAIN, TABLE_TEXT},
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [SHRINKER] = {"shrinker", TABLE_PLAIN, TABLE_TEXT},
    [TIMES] = {"times", TABLE_COUNT, TABLE_WHOLE},
    [DURATION] = {"duration", TABLE_DURATION, TABLE_WHOLE},
    [LONGEST] = {"longest", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 2, .merge_largest = true},
    [SCANNED] = {"scanned_pages", TABLE_COUNT, TABLE_WHOLE, "scanned"},
    [RECLAIMED] = {"reclaimed_pages", TABLE_COUNT, TABLE_WHOLE, "reclaimed"},
    [EFFICIENCY] = {"efficiency", TABLE_PERCENT, TABLE_REAL, .drop_rank = 3},
    [SCANNED_CLEAN] = {"scanned_file_pages", TABLE_COUNT, TABLE_WHOLE, "scanned_file", .drop_rank = 8},
    [CLEAN] = {"clean_pages", TABLE_COUNT, TABLE_WHOLE, "clean", .drop_rank = 4},
    [DIRTY] = {"dirty_pages", TABLE_COUNT, TABLE_WHOLE, "dirty", .drop_rank = 5},
    [WRITEBACK] = {"writeback_pages", TABLE_COUNT, TABLE_WHOLE, "writeback", .drop_rank = 7},
    [SCANNED_ANONYMOUS] = {"scanned_anonymous_pages", TABLE_COUNT, TABLE_WHOLE, "scanned_anonymous",
                           .drop_rank = 9},
    /* These two tell of a swap storm: a screen of 80 columns has them. */
    [ANONYMOUS] = {"anonymous_pages", TABLE_COUNT, TABLE_WHOLE, "anonymous"},
    [WRITTEN] = {"written_folios", TABLE_COUNT, TABLE_WHOLE, "written"},
    [ACTIVATED] = {"activated_pages", TABLE_COUNT, TABLE_WHOLE, "activated", .drop_rank = 10},
    [OBJECTS_SCANNED] = {"scanned_objects", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 11, .hide_if_empty = true},
    [OBJECTS_FREED] = {"freed_objects", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 6, .hide_if_empty = true},
    [HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
};

static void add(void *sum, const void *value)
{
    struct vmscan_value *a = sum;
    const struct vmscan_value *v = value;
    a->times += v->times;
    a->duration_ns += v->duration_ns;
    a->longest_ns = v->longest_ns > a->longest_ns ? v->longest_ns : a->longest_ns;
    for (int file = 0; file < 2; file++) {
        a->scanned[file] += v->scanned[file];
        a->reclaimed[file] += v->reclaimed[file];
    }
    a->dirty += v->dirty;
    a->writeback += v->writeback;
    a->activated += v->activated;
    a->written += v->written;
    a->untold += v->untold;
    a->objects_scanned += v->objects_scanned;
    a->objects_freed += v->objects_freed;
}

/* "direct", or "direct/slab" of what lies within it. */
static void name_phase(struct table *t, const struct vmscan_key *key)
{
    static const char *const names[] = {
        [VMSCAN_KSWAPD] = "kswapd",        [VMSCAN_DIRECT] = "direct",       [VMSCAN_NODE] = "node",
        [VMSCAN_MEMCG] = "memcg",          [VMSCAN_SOFTLIMIT] = "softlimit", [VMSCAN_SLAB] = "slab",
        [VMSCAN_WAKEUP] = "kswapd wakeup", [VMSCAN_OTHER] = "other",
    };
    struct buf b = BUF_INIT;
    if (key->within < VMSCAN_NONE)
        buf_printf(&b, "%s/", names[key->within]);
    buf_addstr(&b, key->phase < VMSCAN_NONE ? names[key->phase] : "?");
    table_text(t, RECLAIM, buf_str(&b));
    buf_release(&b);
}

/* Returns whether the row is of pages outside all phases, of which none was in fact scanned or reclaimed. */
static bool is_nothing(const struct vmscan_key *key, const struct vmscan_value *v)
{
    return key->phase == VMSCAN_OTHER && !v->untold && !v->written && !v->activated &&
           !(v->scanned[0] + v->scanned[1] + v->reclaimed[0] + v->reclaimed[1]);
}

static void add_pages(struct table *t, const struct vmscan_value *v, bool whole)
{
    uint64_t scanned = v->scanned[0] + v->scanned[1], reclaimed = v->reclaimed[0] + v->reclaimed[1];
    table_whole(t, WRITTEN, v->written);
    if (v->untold)
        return;
    table_whole(t, SCANNED, scanned);
    table_whole(t, RECLAIMED, reclaimed);
    if (scanned && whole)
        table_real(t, EFFICIENCY, 100.0 * (double)reclaimed / (double)scanned);
    table_whole(t, SCANNED_CLEAN, v->scanned[1]);
    table_whole(t, CLEAN, v->reclaimed[1]);
    table_whole(t, DIRTY, v->dirty);
    table_whole(t, WRITEBACK, v->writeback);
    table_whole(t, SCANNED_ANONYMOUS, v->scanned[0]);
    table_whole(t, ANONYMOUS, v->reclaimed[0]);
    table_whole(t, ACTIVATED, v->activated);
}

static void add_times(struct table *t, const struct vmscan_value *v)
{
    table_whole(t, DURATION, v->duration_ns);
    table_whole(t, LONGEST, v->longest_ns);
}

static void row(struct sys_session *s, struct table *t, const void *data, const void *sum)
{
    const struct vmscan_key *key = data;
    const struct vmscan_value *v = sum;
    uint32_t parts = s->settings.config.parts;
    if (is_nothing(key, v))
        return;
    table_row(t);
    name_phase(t, key);
    if (parts & VMSCAN_BY_PROCESS)
        table_whole(t, PID, key->pid);
    if (parts & (VMSCAN_BY_PROCESS | VMSCAN_BY_COMM))
        table_text(t, COMM, key->comm);
    if (parts & VMSCAN_BY_SHRINKER && key->shrinker)
        resolver_kernel_code(s, t, SHRINKER, key->shrinker);
    if (key->phase != VMSCAN_OTHER)
        table_whole(t, TIMES, v->times);
    if (key->phase < VMSCAN_PHASES)
        add_times(t, v);
    if (key->phase == VMSCAN_SLAB) {
        table_whole(t, OBJECTS_SCANNED, v->objects_scanned);
        table_whole(t, OBJECTS_FREED, v->objects_freed);
    } else if (key->phase != VMSCAN_WAKEUP) {
        /* pages outside the phases may be reclaimed without having been seen scanned */
        add_pages(t, v, key->phase != VMSCAN_OTHER);
    }
}

static void add_under_way(void *arg, const void *key, const void *value)
{
    const struct vmscan_task *task = value;
    uint64_t *under_way = arg;
    (void)key;
    for (int i = 0; i < VMSCAN_PHASES; i++)
        *under_way += task->began_ns[i] != 0;
}

static void count_rest(struct sys_session *s)
{
    sys_each(s, "under_way", add_under_way, &s->counted[VMSCAN_UNDER_WAY]);
}

/* Of pages that were not told efficiency is not known. */
static void derive_again(struct table *t, uint32_t row)
{
    const double scanned = table_number(t, row, SCANNED), reclaimed = table_number(t, row, RECLAIMED);
    struct table_value *efficiency = table_cell(t, row, EFFICIENCY);
    if (scanned > 0 && reclaimed >= 0)
        *efficiency = (struct table_value){.known = true, .real = 100.0 * reclaimed / scanned};
}

static const struct sys_part parts[] = {
    {"phase", "the kind of reclaim, and the kind that contains it", 0, offsetof(struct vmscan_key, shrinker),
     0, false, .names = BIT(RECLAIM)},
    {"shrinker", "and the function that shrinks a slab cache", VMSCAN_BY_SHRINKER,
     offsetof(struct vmscan_key, pid), BIT(SHRINKER), false, .names = BIT(RECLAIM) | BIT(SHRINKER)},
    {"process", "and the process that pays", VMSCAN_BY_PROCESS, sizeof(struct vmscan_key),
     BIT(PID) | BIT(COMM) | BIT(CONTAINER), false, .names = BIT(RECLAIM) | BIT(PID) | BIT(COMM)},
    {"comm", "and the name of that process", VMSCAN_BY_COMM, sizeof(struct vmscan_key), BIT(COMM), false,
     .names = BIT(RECLAIM) | BIT(COMM)},
    {NULL, NULL, 0, 0, 0, false},
};

static const struct sys_counted counted[] = {
    {VMSCAN_BEGUN_BEFORE, "phase{s} had begun before the tool, not counted", "begun_before", false},
    {VMSCAN_UNDER_WAY, "phase{s} had not ended at the end, not counted", "under_way", false},
    {VMSCAN_UNTOLD,
     "phase{s} whose pages are not known: before 6.8 the multi-generational LRU "
     "(/sys/kernel/mm/lru_gen/enabled) "
     "has no events for them",
     "untold", false},
    {0, NULL, NULL, false},
};

#define SLAB_START_ARGUMENTS "shr,sc,nr_objects_to_shrink,cache_items,delta,total_scan"
#define SLAB_END_ARGUMENTS   "shr,nid,shrinker_retval,unused_scan_cnt,new_scan_cnt,total_scan"
#define ISOLATE_ARGUMENTS    "highest_zoneidx,order,nr_requested,nr_scanned,nr_skipped,nr_taken"
#define SHRINK_ARGUMENTS     "nid,nr_scanned,nr_reclaimed,stat,priority,file"

#define BY_ITSELF(method, name)                                                                              \
    {                                                                                                        \
#method "_" name, NULL, NULL, NULL                                                                   \
    }
/* Attached for that they happen, whatever their arguments are. */
#define HAPPENINGS(method)                                                                                   \
    BY_ITSELF(method, "direct_begin"), BY_ITSELF(method, "direct_end"), BY_ITSELF(method, "memcg_begin"),    \
        BY_ITSELF(method, "memcg_end"), BY_ITSELF(method, "softlimit_begin"),                                \
        BY_ITSELF(method, "softlimit_end"), BY_ITSELF(method, "node_begin"), BY_ITSELF(method, "node_end"),  \
        BY_ITSELF(method, "wake"), BY_ITSELF(method, "sleep"), BY_ITSELF(method, "wakeup"),                  \
        {#method "_write_folio", NULL, NULL, "trace_event_raw_mm_vmscan_write_folio"},                       \
    {                                                                                                        \
#method "_writepage", NULL, NULL, "trace_event_raw_mm_vmscan_writepage"                              \
    }
#define BY_POSITION(method)                                                                                  \
    {#method "_slab_start", "mm_shrink_slab_start", SLAB_START_ARGUMENTS, NULL},                             \
        {#method "_slab_end", "mm_shrink_slab_end", SLAB_END_ARGUMENTS, NULL},                               \
        {#method "_isolate", "mm_vmscan_lru_isolate", ISOLATE_ARGUMENTS, NULL},                              \
    {                                                                                                        \
#method "_shrink", "mm_vmscan_lru_shrink_inactive", SHRINK_ARGUMENTS, NULL                           \
    }

static const struct sys_attach_method methods[] = {
    {.name = "tp_btf", .attach = SYS_ATTACH(HAPPENINGS(btf), BY_POSITION(btf))},
    {.name = "raw_tp", .attach = SYS_ATTACH(HAPPENINGS(raw), BY_POSITION(raw))},
    {.name = "tp",
     .attach = SYS_ATTACH(HAPPENINGS(tp), BY_ITSELF(tp, "slab_start"), BY_ITSELF(tp, "slab_end"),
                          BY_ITSELF(tp, "isolate"), BY_ITSELF(tp, "shrink"))},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys vmscan",
    "show each second the kinds of reclaim, their duration, scanned and reclaimed pages",
    "allium sys vmscan --by process --sort duration --interval 10s",
    "show the processes that pay for it",
    "allium sys vmscan --by shrinker --hist --duration 1m --interval 1m",
    "show the shrinkers of slab caches, and the duration of each call",
    NULL,
};

static const struct sys_measure measure = {.doc = "the duration of each phase", .column = HISTOGRAM};

static const char *const questions[] = {
    "Which kind of reclaim runs, and how long does it take: kswapd, tasks that need memory, cgroups at their "
    "limits?",
    "How many of the scanned pages are reclaimed, and why are the others not?",
    "Which processes pay for reclaim? (--by process)",
    "Which shrinkers of slab caches take the time? (--by shrinker)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "each begin, end and scan",
    .event_ns = 280,
    .measured = "the programs alone, by the kernel's clock; tp_btf, Linux 6.18 in a virtual machine",
    .unseen = "the pages that the multi-generational LRU scans before Linux 6.8",
};

SYS_OBJECT_OF(vmscan);

const struct sys_tool sys_vmscan = {
    .name = "vmscan",
    .summary = "show cost and yield of reclaim by kind: direct, memory cgroups, kswapd, node, slab",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(vmscan),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = DURATION,
    .measure = &measure,
    .container = CONTAINER,
    .interval_ns = 1000000000u,
    .parts = parts,
    .counted = counted,
    .key_bytes = sizeof(struct vmscan_key),
    .value_bytes = sizeof(struct vmscan_value),
    .add = add,
    .row = row,
    .derive_again = derive_again,
    .count_rest = count_rest,
};
