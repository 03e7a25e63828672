/* SPDX-License-Identifier: BSD-2-Clause */
/* The accounts as rows of `allium sys kmem`. */
#include "sys/record/kernel_capture.h"

#include <string.h>

#include "bpf/kmem.h"
#include "symbol/symbol.h"
#include "sys/record/capture_span.h"

static uint32_t column_of(const struct table *t, const char *name)
{
    uint32_t i = 0;
    while (strcmp(t->columns[i].name, name) != 0)
        i++;
    return i;
}

static void add_account(struct kmem_account *to, const struct kmem_account *a)
{
    to->allocations += a->allocations;
    to->requested_bytes += a->requested_bytes;
    to->allocated_bytes += a->allocated_bytes;
    to->frees += a->frees;
    to->freed_bytes += a->freed_bytes;
    to->frees_here += a->frees_here;
    to->freed_here_bytes += a->freed_here_bytes;
    to->at_peak_bytes += a->at_peak_bytes;
    to->oldest_ns = a->oldest_ns > to->oldest_ns ? a->oldest_ns : to->oldest_ns;
}

void kernel_capture_put_name(struct table *t, uint32_t column,
                             void (*add)(void *arg, struct buf *b, uint64_t number), void *arg,
                             uint64_t number)
{
    struct buf b = BUF_INIT;
    add(arg, &b, number);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

enum column {
    SITE,
    SOURCE_FILE,
    SOURCE_LINE,
    FREE_SITE,
    PID,
    CGROUP,
    ALLOCATED,
    SLACK,
    REQUESTED,
    ALLOCATIONS,
    FREES,
    FREED,
    LIVE,
    LIVE_OBJECTS,
    AT_PEAK,
    OLDEST,
    CROSS_CPU,
    CROSS_NODE,
    CACHE,
    GFP,
    COMM,
    COLUMNS
};

/* In tables of sys kmem. */
static const char *const names_of_columns[COLUMNS] = {
    [SITE] = "call_site",
    [SOURCE_FILE] = "file",
    [SOURCE_LINE] = "line",
    [FREE_SITE] = "free_site",
    [PID] = "pid",
    [CGROUP] = "cgroup",
    [ALLOCATED] = "allocated",
    [SLACK] = "slack",
    [REQUESTED] = "requested",
    [ALLOCATIONS] = "allocations",
    [FREES] = "frees",
    [FREED] = "freed",
    [LIVE] = "live",
    [LIVE_OBJECTS] = "live_objects",
    [AT_PEAK] = "at_peak",
    [OLDEST] = "oldest",
    [CROSS_CPU] = "cross_cpu_frees",
    [CROSS_NODE] = "cross_node_frees",
    [CACHE] = "cache",
    [GFP] = "gfp",
    [COMM] = "comm",
};

const char *const kernel_capture_rows_names[KERNEL_CAPTURE_ROWS] = {
    [KERNEL_CAPTURE_CALLS] = "kmem",
    [KERNEL_CAPTURE_PROCESSES] = "kmem_process",
    [KERNEL_CAPTURE_PAIRS] = "kmem_pair",
};

/* Of each of them; what is not known is left out then. */
#define BIT(column) (UINT64_C(1) << (column))
#define SUMS                                                                                                 \
    (BIT(ALLOCATED) | BIT(SLACK) | BIT(REQUESTED) | BIT(ALLOCATIONS) | BIT(FREES) | BIT(FREED) | BIT(LIVE) | \
     BIT(LIVE_OBJECTS) | BIT(AT_PEAK) | BIT(OLDEST))
static const uint64_t columns_of_rows[KERNEL_CAPTURE_ROWS] = {
    [KERNEL_CAPTURE_CALLS] =
        BIT(SITE) | BIT(SOURCE_FILE) | BIT(SOURCE_LINE) | BIT(CACHE) | BIT(GFP) | BIT(COMM) | SUMS,
    [KERNEL_CAPTURE_PROCESSES] = BIT(PID) | BIT(COMM) | BIT(CGROUP) | SUMS,
    [KERNEL_CAPTURE_PAIRS] =
        BIT(SITE) | BIT(FREE_SITE) | BIT(CACHE) | BIT(FREES) | BIT(FREED) | BIT(CROSS_CPU) | BIT(CROSS_NODE),
};

static uint64_t known_columns(const struct kernel_capture *c)
{
    uint64_t known = ~UINT64_C(0);
    if (!c->names.add_file)
        known &= ~(BIT(SOURCE_FILE) | BIT(SOURCE_LINE));
    if (!c->comms)
        known &= ~BIT(COMM);
    if (!c->names.add_gfp)
        known &= ~BIT(GFP);
    if (!c->names.cgroup)
        known &= ~BIT(CGROUP);
    return known;
}

/* Finds the columns, and shows those of these rows. */
static void find_columns(const struct kernel_capture *c, enum kernel_capture_rows which, struct table *t,
                         uint32_t at[static COLUMNS])
{
    const uint64_t has = columns_of_rows[which] & known_columns(c);
    t->hidden = ~UINT64_C(0);
    for (int i = 0; i < COLUMNS; i++) {
        at[i] = column_of(t, names_of_columns[i]);
        if (has >> i & 1)
            t->hidden &= ~(UINT64_C(1) << at[i]);
    }
}

static bool has(const struct table *t, uint32_t column)
{
    return !table_hides(t, column);
}

struct accounts VEC(struct kmem_account);

/* Accounts of one call, cache, program and set of flags become one, whatever their stacks and size classes. */
static void merge(struct accounts *merged, const struct kernel_capture *c)
{
    size_t n;
    struct map index = {0};
    const struct kmem_account *rows = capture_span_rows(c->span, c->accounts, &n);
    for (size_t i = 0; i < n; i++) {
        const struct {
            uint64_t call_site, gfp;
            uint32_t cache, comm;
        } key = {rows[i].call_site, rows[i].gfp, rows[i].cache, rows[i].comm};
        bool added;
        size_t row = map_put(&index, &key, sizeof(key), merged->len, &added);
        if (added)
            *vec_push(merged) = rows[i];
        else
            add_account(&merged->at[row], &rows[i]);
    }
    map_release(&index);
}

static void add_sums(struct table *t, const uint32_t at[static COLUMNS], const struct kmem_account *a)
{
    table_whole(t, at[ALLOCATED], a->allocated_bytes);
    table_whole(t, at[SLACK], a->allocated_bytes - a->requested_bytes);
    table_whole(t, at[REQUESTED], a->requested_bytes);
    table_whole(t, at[ALLOCATIONS], a->allocations);
    table_whole(t, at[FREES], a->frees_here);
    table_whole(t, at[FREED], a->freed_here_bytes);
    table_whole(t, at[LIVE], a->allocated_bytes - a->freed_bytes);
    table_whole(t, at[LIVE_OBJECTS], a->allocations - a->frees);
    table_whole(t, at[AT_PEAK], a->at_peak_bytes);
    if (a->allocations != a->frees)
        table_whole(t, at[OLDEST], a->oldest_ns);
}

static void put_line(const struct kernel_code_names *names, struct table *t, uint32_t column, uint64_t call)
{
    struct symbol_frames frames = {0};
    struct buf b = BUF_INIT;
    if (!names->frames(names->arg, call, &frames) || !frames.len)
        return;
    const char *file = names->frame_file(names->arg, &frames.at[0]);
    if (file) {
        buf_printf(&b, "%s:%u", file, frames.at[0].line);
        table_text(t, column, buf_str(&b));
    }
    buf_release(&b);
}

static void add_calls(struct kernel_capture *c, struct table *t, const uint32_t at[static COLUMNS])
{
    const struct kernel_code_names *names = &c->names;
    struct accounts merged = {0};
    merge(&merged, c);
    vec_each (const struct kmem_account, a, &merged) {
        const char *cache = kmem_accounts_text(c->accounts, a->cache);
        table_row(t);
        kernel_capture_put_name(t, at[SITE], names->add_call, names->arg, a->call_site);
        if (has(t, at[SOURCE_FILE])) {
            kernel_capture_put_name(t, at[SOURCE_FILE], names->add_file, names->arg, a->call_site);
            put_line(names, t, at[SOURCE_LINE], a->call_site);
        }
        add_sums(t, at, a);
        if (*cache)
            table_text(t, at[CACHE], cache);
        if (has(t, at[GFP]) && (a->allocations || a->frees))
            kernel_capture_put_name(t, at[GFP], names->add_gfp, names->arg, a->gfp);
        if (has(t, at[COMM]))
            table_text(t, at[COMM], kmem_accounts_text(c->accounts, a->comm));
    }
    vec_release(&merged);
}

static void add_processes(struct kernel_capture *c, struct table *t, const uint32_t at[static COLUMNS])
{
    size_t n;
    const struct kmem_account *rows = capture_span_processes(c->span, c->accounts, &n);
    for (size_t i = 0; i < n; i++) {
        const char *cgroup = c->names.cgroup ? c->names.cgroup(c->names.arg, rows[i].process) : NULL;
        table_row(t);
        table_whole(t, at[PID], (uint64_t)rows[i].process);
        table_text(t, at[COMM], kmem_accounts_text(c->accounts, rows[i].comm));
        if (cgroup)
            table_text(t, at[CGROUP], cgroup);
        add_sums(t, at, &rows[i]);
    }
}

static void add_pairs(struct kernel_capture *c, struct table *t, const uint32_t at[static COLUMNS])
{
    size_t n;
    const struct kmem_pair *pairs = capture_span_pairs(c->span, c->accounts, &n);
    for (size_t i = 0; i < n; i++) {
        const char *cache = kmem_accounts_text(c->accounts, pairs[i].cache);
        table_row(t);
        kernel_capture_put_name(t, at[SITE], c->names.add_call, c->names.arg, pairs[i].call_site);
        kernel_capture_put_name(t, at[FREE_SITE], c->names.add_call, c->names.arg, pairs[i].free_site);
        if (*cache)
            table_text(t, at[CACHE], cache);
        table_whole(t, at[FREES], pairs[i].frees);
        table_whole(t, at[FREED], pairs[i].freed_bytes);
        table_whole(t, at[CROSS_CPU], pairs[i].cross_cpu_frees);
        table_whole(t, at[CROSS_NODE], pairs[i].cross_node_frees);
    }
}

/* The parts by which rows by call are told apart. */
static const char *parts_of_calls(const struct kernel_capture *c)
{
    static const char *const parts[2][2][2] = {
        {{"site,cache", "site,cache,gfp"}, {"site,cache,comm", "site,cache,comm,gfp"}},
        {{"site,file,line,cache", "site,file,line,cache,gfp"},
         {"site,file,line,cache,comm", "site,file,line,cache,comm,gfp"}}};
    return parts[c->names.add_file != NULL][c->comms][c->names.add_gfp != NULL];
}

const char *kernel_capture_add_rows(struct kernel_capture *c, enum kernel_capture_rows which, struct table *t)
{
    uint32_t at[COLUMNS];
    size_t n;
    kmem_accounts_update_peak(c->accounts);
    kmem_accounts_update_ages(c->accounts);
    find_columns(c, which, t, at);
    switch (which) {
    case KERNEL_CAPTURE_PROCESSES:
        if (!kmem_accounts_processes(c->accounts, &n) || !n)
            return NULL;
        add_processes(c, t, at);
        return c->names.cgroup ? "process,comm,cgroup" : "process,comm";
    case KERNEL_CAPTURE_PAIRS:
        add_pairs(c, t, at);
        return "pair";
    default:
        add_calls(c, t, at);
        return parts_of_calls(c);
    }
}

void kernel_capture_count(const struct kernel_capture *c, uint64_t counted[static SYS_COUNTS])
{
    const struct kmem_totals t = capture_span_totals(c->span, c->accounts);
    counted[SYS_RING_FULL] = c->lost;
    counted[KMEM_NULL_FREES] = t.null_frees;
    counted[KMEM_REUSED] = t.frees_without_event;
    counted[KMEM_FREED_BEFORE] = t.unmatched_frees;
}
