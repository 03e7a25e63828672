/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/trace/allocator_time.h"

#include <stdlib.h>

enum { CALL, CALLS, TIME, LONGEST, FAULTS, RECLAIM, OFF_CPU, REST, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    [CALL] = {.name = "call", .type = TABLE_TEXT},
    [CALLS] = {.name = "calls", .type = TABLE_WHOLE, .unit = TABLE_COUNT},
    [TIME] = {.name = "time", .type = TABLE_WHOLE, .unit = TABLE_DURATION},
    [LONGEST] = {.name = "longest", .type = TABLE_WHOLE, .unit = TABLE_DURATION},
    [FAULTS] = {.name = "faults", .type = TABLE_WHOLE, .unit = TABLE_DURATION},
    [RECLAIM] = {.name = "reclaim", .type = TABLE_WHOLE, .unit = TABLE_DURATION},
    [OFF_CPU] = {.name = "off_cpu", .type = TABLE_WHOLE, .unit = TABLE_DURATION, .header = "off CPU"},
    [REST] = {.name = "rest", .type = TABLE_WHOLE, .unit = TABLE_DURATION},
};

/* The column of each part, and the event that the trace has if its group was recorded. */
static const struct {
    unsigned column;
    const char *event;
} parts[SPAN_PART_ANY] = {
    [SPAN_PART_FAULTS] = {FAULTS, "kernel:page_fault_begin"},
    [SPAN_PART_RECLAIM] = {RECLAIM, "kernel:reclaim_begin"},
    [SPAN_PART_OFF_CPU] = {OFF_CPU, "kernel:sched_switch"},
};

struct row {
    const char *call;
    bool is_function; /* of --function */
    struct allocator_sums sums;
};

struct allocator_time {
    struct VEC(struct row) rows; /* a handful */
};

struct allocator_time *allocator_time_new(void)
{
    return mem_alloc(sizeof(struct allocator_time));
}

void allocator_time_free(struct allocator_time *a)
{
    if (!a)
        return;
    vec_release(&a->rows);
    free(a);
}

static struct row *row_of(struct allocator_time *a, const char *call)
{
    vec_each (struct row, r, &a->rows)
        if (!strcmp(r->call, call))
            return r;
    struct row *r = vec_push(&a->rows);
    r->call = call;
    return r;
}

static void add_sums(struct allocator_sums *to, const struct allocator_sums *from)
{
    to->calls += from->calls;
    to->total_ns += from->total_ns;
    to->longest_ns = to->longest_ns > from->longest_ns ? to->longest_ns : from->longest_ns;
    for (int part = 0; part < SPAN_PARTS; part++)
        to->part_ns[part] += from->part_ns[part];
}

void allocator_time_add(struct allocator_time *a, const struct span *ended)
{
    if (!ended->outermost)
        return;
    const uint64_t took_ns = ended->ended_ns - ended->began_ns;
    struct allocator_sums one = {.calls = 1, .total_ns = took_ns, .longest_ns = took_ns};
    memcpy(one.part_ns, ended->part_ns, sizeof(one.part_ns));
    struct row *r = row_of(a, ended->role->name);
    r->is_function = ended->role->kind == SPAN_FUNCTION;
    add_sums(&r->sums, &one);
}

bool allocator_time_has_functions(const struct allocator_time *a)
{
    vec_each (const struct row, r, &a->rows)
        if (r->is_function)
            return true;
    return false;
}

struct allocator_sums allocator_time_sums(const struct allocator_time *a)
{
    struct allocator_sums all = {0};
    vec_each (const struct row, r, &a->rows)
        if (!r->is_function)
            add_sums(&all, &r->sums);
    return all;
}

struct table *allocator_time_table(const struct allocator_time *a, unsigned known, uint32_t top)
{
    struct table *t = table_new("events", 1, columns, COLUMNS);
    vec_each (const struct row, r, &a->rows) {
        table_row(t);
        table_text(t, CALL, r->call);
        table_whole(t, CALLS, r->sums.calls);
        table_whole(t, TIME, r->sums.total_ns);
        table_whole(t, LONGEST, r->sums.longest_ns);
        for (int part = 0; part < SPAN_PART_ANY; part++)
            if (known & 1u << part)
                table_whole(t, parts[part].column, r->sums.part_ns[part]);
        table_whole(t, REST, r->sums.total_ns - r->sums.part_ns[SPAN_PART_ANY]);
    }
    table_sort(t, TIME, TABLE_MOST_FIRST);
    if (top)
        table_cut(t, top);
    return t;
}

unsigned allocator_time_known(const struct event_class *const *classes, size_t n)
{
    unsigned known = 0;
    for (size_t i = 0; i < n; i++)
        for (int part = 0; part < SPAN_PART_ANY; part++)
            known |= strcmp(classes[i]->name, parts[part].event) ? 0 : 1u << part;
    return known;
}
