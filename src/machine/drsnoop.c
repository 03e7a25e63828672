/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys drsnoop`: who stalls in direct reclaim. */
#include "bpf/drsnoop.h"

#include "machine/events.h"
#include "machine/names.h"

enum column { KIND = EVENTS_COLUMNS, DURATION, RECLAIMED, ORDER, GFP, KERNEL_STACK, USER_STACK };

static const struct table_column columns[] = {
    EVENTS_HEAD,
    [KIND] = {"reclaim", TABLE_PLAIN, TABLE_TEXT},
    [DURATION] = {"duration", TABLE_DURATION, TABLE_WHOLE},
    [RECLAIMED] = {"reclaimed_pages", TABLE_PLAIN, TABLE_WHOLE},
    [ORDER] = {"order", TABLE_PLAIN, TABLE_SIGNED},
    [GFP] = {"gfp", TABLE_PLAIN, TABLE_TEXT},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

static void event(struct sys_session *s, struct table *t, const void *data, size_t bytes)
{
    const struct drsnoop_event *e = data;
    (void)bytes;
    events_row(s, t, &e->head);
    table_text(t, KIND, e->kind == DRSNOOP_MEMCG ? "memcg" : "direct");
    table_whole(t, DURATION, e->duration_ns);
    table_whole(t, RECLAIMED, e->reclaimed_pages);
    table_signed(t, ORDER, e->order);
    names_gfp(s, t, GFP, e->gfp);
    names_kernel_stack(s, t, KERNEL_STACK, e->head.kernel_stack);
    names_user_stack(s, t, USER_STACK, e->head.user_stack, e->head.task.pid, e->head.time_ns);
}

static const struct sys_counted counted[] = {
    {DRSNOOP_BEGUN_BEFORE, "reclaims that had begun before we did, left out", "begun_before", false},
    {0, NULL, NULL, false},
};

#define BEGIN_ARGUMENTS "order,gfp_flags"
#define END_ARGUMENTS   "nr_reclaimed"

static const struct sys_rung rungs[] = {
    {.name = "tp_btf",
     .attach = {{"btf_begin", "mm_vmscan_direct_reclaim_begin", BEGIN_ARGUMENTS, NULL},
                {"btf_end", "mm_vmscan_direct_reclaim_end", END_ARGUMENTS, NULL},
                {"btf_memcg_begin", "mm_vmscan_memcg_reclaim_begin", BEGIN_ARGUMENTS, NULL},
                {"btf_memcg_end", "mm_vmscan_memcg_reclaim_end", END_ARGUMENTS, NULL}}},
    {.name = "raw_tp",
     .attach = {{"raw_begin", "mm_vmscan_direct_reclaim_begin", BEGIN_ARGUMENTS, NULL},
                {"raw_end", "mm_vmscan_direct_reclaim_end", END_ARGUMENTS, NULL},
                {"raw_memcg_begin", "mm_vmscan_memcg_reclaim_begin", BEGIN_ARGUMENTS, NULL},
                {"raw_memcg_end", "mm_vmscan_memcg_reclaim_end", END_ARGUMENTS, NULL}}},
    {.name = "tp",
     .attach = {{"tp_begin", NULL, NULL, NULL},
                {"tp_end", NULL, NULL, NULL},
                {"tp_memcg_begin", NULL, NULL, NULL},
                {"tp_memcg_end", NULL, NULL, NULL}}},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys drsnoop",
    "who had to reclaim memory himself before he got any, for how long, and what came of it",
    "allium sys drsnoop --where 'duration>10ms' --stacks kernel",
    "the long ones, and what they were at",
    NULL,
};

SYS_OBJECT_OF(drsnoop);

const struct sys_tool sys_drsnoop = {
    .name = "drsnoop",
    .summary = "tasks that stall in direct reclaim: how long, for what, how much it gave",
    .examples = examples,
    SYS_OBJECT(drsnoop),
    .rungs = rungs,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = DURATION,
    .counted = counted,
    .ring_bytes = 1u << 18,
    .event = event,
};
