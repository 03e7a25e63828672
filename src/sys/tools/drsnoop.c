/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys drsnoop`: who stalls in direct reclaim. */
#include "bpf/drsnoop.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "sys/event_columns.h"
#include "sys/resolver.h"

enum column {
    KIND = EVENT_COLUMNS_COLUMNS,
    DURATION,
    RECLAIMED,
    SCANNED,
    EFFICIENCY,
    ORDER,
    GFP,
    MEMCG,
    LIMIT_OF,
    LIMIT,
    USAGE,
    FREE,
    UNDER_WAY,
    KERNEL_STACK,
    USER_STACK
};

static const struct table_column columns[] = {
    EVENT_COLUMNS_HEAD,
    [KIND] = {"reclaim", TABLE_PLAIN, TABLE_TEXT, .width = 9},
    [DURATION] = {"duration", TABLE_DURATION, TABLE_WHOLE},
    [RECLAIMED] = {"reclaimed_pages", TABLE_PLAIN, TABLE_WHOLE, .drop_rank = 2},
    [SCANNED] = {"scanned_pages", TABLE_PLAIN, TABLE_WHOLE, .drop_rank = 7},
    [EFFICIENCY] = {"efficiency", TABLE_PERCENT, TABLE_REAL, .drop_rank = 6},
    [ORDER] = {"order", TABLE_PLAIN, TABLE_SIGNED, .drop_rank = 4},
    [GFP] = {"gfp", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 3},
    [MEMCG] = {"memcg", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 1},
    [LIMIT_OF] = {"limit_of", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 8},
    [LIMIT] = {"memcg_limit", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 5},
    [USAGE] = {"memcg_usage", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 7},
    [FREE] = {"free", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 9},
    [UNDER_WAY] = {"under_way", TABLE_PLAIN, TABLE_FLAG, .drop_rank = 10},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

static void add_memcg(struct sys_session *s, struct table *t, const struct drsnoop_event *e)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!e->memcg)
        return;
    resolver_memcg(s, t, MEMCG, e->memcg);
    table_text(t, LIMIT_OF, event_columns_limit_word(e->limit));
    table_whole(t, LIMIT, e->limit_pages * page);
    table_whole(t, USAGE, e->usage_pages * page);
}

/* What is known from the beginning on. */
static void begin_row(struct sys_session *s, struct table *t, const struct drsnoop_event *e)
{
    static const char *const kinds[DRSNOOP_KINDS] = {"direct", "memcg", "softlimit"};
    event_columns_row(s, t, &e->head);
    table_text(t, KIND, e->kind < DRSNOOP_KINDS ? kinds[e->kind] : NULL);
    if (!e->untold)
        table_whole(t, SCANNED, e->scanned_pages);
    add_memcg(s, t, e);
    if (e->free_pages >= 0)
        table_whole(t, FREE, (uint64_t)e->free_pages * (uint64_t)sysconf(_SC_PAGESIZE));
    table_signed(t, ORDER, e->order);
    resolver_gfp(s, t, GFP, e->gfp);
    resolver_kernel_stack(s, t, KERNEL_STACK, e->head.kernel_stack);
    resolver_user_stack(s, t, USER_STACK, e->head.user_stack, e->head.task.pid, e->head.time_ns);
}

static void event(struct sys_session *s, struct table *t, const void *data, size_t bytes)
{
    const struct drsnoop_event *e = data;
    (void)bytes;
    begin_row(s, t, e);
    table_whole(t, DURATION, e->duration_ns);
    table_whole(t, RECLAIMED, e->reclaimed_pages);
    if (e->scanned_pages)
        table_real(t, EFFICIENCY, 100.0 * (double)e->reclaimed_pages / (double)e->scanned_pages);
    table_flag(t, UNDER_WAY, false);
}

struct unfinished {
    struct sys_session *s;
    struct table *t;
};

static void add_unfinished(void *arg, const void *key, const void *value)
{
    const struct unfinished *u = arg;
    const struct drsnoop_event *e = value;
    (void)key;
    begin_row(u->s, u->t, e);
    table_at_least(u->t, DURATION, u->s->until_ns > e->head.time_ns ? u->s->until_ns - e->head.time_ns : 0);
    table_flag(u->t, UNDER_WAY, true);
}

/* Reclaims that have not ended take at least so long. */
static void rest(struct sys_session *s, struct table *t)
{
    struct unfinished u = {s, t};
    sys_each(s, "under_way", add_unfinished, &u);
}

static void count_one(void *arg, const void *key, const void *value)
{
    uint64_t *n = arg;
    (void)key, (void)value;
    ++*n;
}

static void count_rest(struct sys_session *s)
{
    sys_each(s, "under_way", count_one, &s->counted[DRSNOOP_UNDER_WAY]);
}

/* Before the programs are loaded: up to which number nodes may have one. */
static int ready(struct sys_session *s, struct error *e)
{
    uint32_t *nodes = sys_variable(s, "nodes", sizeof(*nodes));
    struct buf text = BUF_INIT;
    (void)e;
    if (nodes && !file_read("/sys/devices/system/node/possible", 4096, &text)) {
        const char *last = buf_str(&text) + strcspn(buf_str(&text), "\n");
        while (last > buf_str(&text) && isdigit((unsigned char)last[-1]))
            last--;
        *nodes = (uint32_t)strtoul(last, NULL, 10) + 1;
    }
    buf_release(&text);
    return 0;
}

static const struct sys_counted counted[] = {
    {DRSNOOP_BEGUN_BEFORE, "stall{s} had begun before the tool, left out", "begun_before", false},
    {DRSNOOP_UNDER_WAY, "stall{s} had not ended at the end", "under_way", false},
    {0, NULL, NULL, false},
};

#define BEGIN_ARGUMENTS "order,gfp_flags"
#define END_ARGUMENTS   "nr_reclaimed"
#define SCAN_ARGUMENTS  "highest_zoneidx,order,nr_requested,nr_scanned,nr_skipped,nr_taken"

static const struct sys_attach_method methods[] = {
    {.name = "tp_btf",
     .attach =
         SYS_ATTACH({"btf_begin", "mm_vmscan_direct_reclaim_begin", BEGIN_ARGUMENTS, NULL},
                    {"btf_end", "mm_vmscan_direct_reclaim_end", END_ARGUMENTS, NULL},
                    {"btf_memcg_begin", "mm_vmscan_memcg_reclaim_begin", BEGIN_ARGUMENTS, NULL},
                    {"btf_memcg_end", "mm_vmscan_memcg_reclaim_end", END_ARGUMENTS, NULL},
                    {"btf_softlimit_begin", "mm_vmscan_memcg_softlimit_reclaim_begin", BEGIN_ARGUMENTS, NULL},
                    {"btf_softlimit_end", "mm_vmscan_memcg_softlimit_reclaim_end", END_ARGUMENTS, NULL},
                    {"btf_scanned", "mm_vmscan_lru_isolate", SCAN_ARGUMENTS, NULL})},
    {.name = "raw_tp",
     .attach =
         SYS_ATTACH({"raw_begin", "mm_vmscan_direct_reclaim_begin", BEGIN_ARGUMENTS, NULL},
                    {"raw_end", "mm_vmscan_direct_reclaim_end", END_ARGUMENTS, NULL},
                    {"raw_memcg_begin", "mm_vmscan_memcg_reclaim_begin", BEGIN_ARGUMENTS, NULL},
                    {"raw_memcg_end", "mm_vmscan_memcg_reclaim_end", END_ARGUMENTS, NULL},
                    {"raw_softlimit_begin", "mm_vmscan_memcg_softlimit_reclaim_begin", BEGIN_ARGUMENTS, NULL},
                    {"raw_softlimit_end", "mm_vmscan_memcg_softlimit_reclaim_end", END_ARGUMENTS, NULL},
                    {"raw_scanned", "mm_vmscan_lru_isolate", SCAN_ARGUMENTS, NULL})},
    {.name = "tp",
     .attach = SYS_ATTACH({"tp_begin", NULL, NULL, NULL}, {"tp_end", NULL, NULL, NULL},
                          {"tp_memcg_begin", NULL, NULL, NULL}, {"tp_memcg_end", NULL, NULL, NULL},
                          {"tp_softlimit_begin", NULL, NULL, NULL}, {"tp_softlimit_end", NULL, NULL, NULL},
                          {"tp_scanned", NULL, NULL, NULL})},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys drsnoop",
    "show tasks that stalled in direct reclaim, for how long, and how much they reclaimed",
    "allium sys drsnoop --where 'duration>10ms' --stacks kernel",
    "show long stalls with their kernel stacks",
    NULL,
};

static const struct sys_measure measure = {
    .doc = "the duration of each stall", .summary = event_columns_durations, .columns = 1ull << DURATION};

static const char *const questions[] = {
    "Which tasks must reclaim memory themselves before they get any, and how long do they wait?",
    "Is the machine short of memory, or is a cgroup at its limit, and which one?",
    "How much did each stall reclaim, of how much that it scanned?",
    "Which code requested the memory? (--stacks both)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "the begin and the end of a stall, and each scan in it",
    .event_ns = 290,
    .measured = "the programs alone, by the kernel's clock; tp_btf, Linux 6.18 in a virtual machine",
    .unseen = "reclaim by kswapd (see allium sys vmscan), and waits for pages that are read back",
};

SYS_OBJECT_OF(drsnoop);

const struct sys_tool sys_drsnoop = {
    .name = "drsnoop",
    .summary = "show tasks that stall in direct reclaim: duration, request, reclaimed memory",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(drsnoop),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = DURATION,
    .measure = &measure,
    .counted = counted,
    .ring_bytes = 1u << 18,
    .event = event,
    .rest = rest,
    .ready = ready,
    .count_rest = count_rest,
};
