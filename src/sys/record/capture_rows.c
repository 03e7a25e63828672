/* SPDX-License-Identifier: BSD-2-Clause */
/* The accounts as rows of `allium sys kmem`. */
#include "sys/record/kernel_capture.h"

#include <string.h>

#include "bpf/kmem.h"
#include "sys/record/capture_site.h"
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
    to->settled_bytes += a->settled_bytes;
    to->no_bytes |= a->no_bytes;
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
    FUNCTION,
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
    SETTLED,
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
    [FUNCTION] = "function",
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
    [SETTLED] = "settled",
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
     BIT(LIVE_OBJECTS) | BIT(SETTLED) | BIT(AT_PEAK) | BIT(OLDEST))
static const uint64_t columns_of_rows[KERNEL_CAPTURE_ROWS] = {
    [KERNEL_CAPTURE_CALLS] = BIT(SITE) | BIT(FUNCTION) | BIT(SOURCE_FILE) | BIT(SOURCE_LINE) | BIT(CACHE) |
                             BIT(GFP) | BIT(COMM) | SUMS,
    [KERNEL_CAPTURE_PROCESSES] = BIT(PID) | BIT(COMM) | BIT(CGROUP) | SUMS,
    [KERNEL_CAPTURE_PAIRS] =
        BIT(SITE) | BIT(FREE_SITE) | BIT(CACHE) | BIT(FREES) | BIT(FREED) | BIT(CROSS_CPU) | BIT(CROSS_NODE),
};

static uint64_t known_columns(const struct kernel_capture *c)
{
    uint64_t known = ~UINT64_C(0);
    if (!c->names.add_file)
        known &= ~(BIT(FUNCTION) | BIT(SOURCE_FILE) | BIT(SOURCE_LINE));
    if (!c->settle_ns)
        known &= ~BIT(SETTLED);
    if (c->no_ages)
        known &= ~BIT(OLDEST);
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

/* A row: accounts of one call, cache, program and set of flags. */
struct row {
    struct capture_site site;
    struct kmem_account sums;
};

struct rows VEC(struct row);

/* Accounts become one whatever their stacks and size classes. What only frees has no stack of its own. */
static void merge(struct rows *merged, const struct kernel_capture *c)
{
    size_t n;
    struct map index = {0};
    struct capture_sites sites = {.capture = c};
    const struct kmem_account *rows = capture_span_rows(c->span, c->accounts, &n);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].allocations && !rows[i].frees && !rows[i].frees_here && !rows[i].at_peak_objects)
            continue;
        const struct capture_site site = capture_site_find(&sites, rows[i].call_site, rows[i].stack);
        const struct {
            uint64_t call, gfp;
            uint32_t cache, comm, inlined, is_helper;
        } key = {site.call, rows[i].gfp, rows[i].cache, rows[i].comm, site.inlined, site.is_helper};
        bool added;
        size_t row = map_put(&index, &key, sizeof(key), merged->len, &added);
        if (added)
            *vec_push(merged) = (struct row){site, rows[i]};
        else
            add_account(&merged->at[row].sums, &rows[i]);
    }
    capture_sites_release(&sites);
    map_release(&index);
}

static void add_sums(struct table *t, const uint32_t at[static COLUMNS], const struct kmem_account *a)
{
    table_whole(t, at[ALLOCATIONS], a->allocations);
    table_whole(t, at[FREES], a->frees_here);
    table_whole(t, at[LIVE_OBJECTS], a->allocations - a->frees);
    if (!a->no_bytes) {
        table_whole(t, at[ALLOCATED], a->allocated_bytes);
        table_whole(t, at[SLACK], a->allocated_bytes - a->requested_bytes);
        table_whole(t, at[REQUESTED], a->requested_bytes);
        table_whole(t, at[FREED], a->freed_here_bytes);
        table_whole(t, at[LIVE], a->allocated_bytes - a->freed_bytes);
        table_whole(t, at[AT_PEAK], a->at_peak_bytes);
    }
    if (has(t, at[SETTLED]))
        table_whole(t, at[SETTLED], a->settled_bytes);
    if (a->allocations != a->frees && has(t, at[OLDEST]))
        table_whole(t, at[OLDEST], a->oldest_ns);
}

static void add_calls(struct kernel_capture *c, struct table *t, const uint32_t at[static COLUMNS])
{
    const struct kernel_code_names *names = &c->names;
    struct rows merged = {0};
    merge(&merged, c);
    vec_each (const struct row, row, &merged) {
        const struct kmem_account *a = &row->sums;
        const char *cache = kmem_accounts_text(c->accounts, a->cache);
        table_row(t);
        capture_site_put(t, at[SITE], c, &row->site, capture_site_add_call);
        if (has(t, at[SOURCE_FILE])) {
            capture_site_put(t, at[FUNCTION], c, &row->site, capture_site_add_function);
            capture_site_put(t, at[SOURCE_FILE], c, &row->site, capture_site_add_file);
            capture_site_put(t, at[SOURCE_LINE], c, &row->site, capture_site_add_line);
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
    struct capture_sites sites = {.capture = c};
    for (size_t i = 0; i < n; i++) {
        const char *cache = kmem_accounts_text(c->accounts, pairs[i].cache);
        const struct capture_site site = capture_site_find(&sites, pairs[i].call_site, KMEM_NO_STACK);
        table_row(t);
        capture_site_put(t, at[SITE], c, &site, capture_site_add_call);
        kernel_capture_put_name(t, at[FREE_SITE], c->names.add_call, c->names.arg, pairs[i].free_site);
        if (*cache)
            table_text(t, at[CACHE], cache);
        table_whole(t, at[FREES], pairs[i].frees);
        table_whole(t, at[FREED], pairs[i].freed_bytes);
        table_whole(t, at[CROSS_CPU], pairs[i].cross_cpu_frees);
        table_whole(t, at[CROSS_NODE], pairs[i].cross_node_frees);
    }
    capture_sites_release(&sites);
}

/* The parts by which rows by call are told apart. */
static const char *parts_of_calls(const struct kernel_capture *c)
{
    static const char *const parts[2][2][2] = {
        {{"site,cache", "site,cache,gfp"}, {"site,cache,comm", "site,cache,comm,gfp"}},
        {{"site,function,file,line,cache", "site,function,file,line,cache,gfp"},
         {"site,function,file,line,cache,comm", "site,function,file,line,cache,comm,gfp"}}};
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
    counted[KMEM_FREED_BEFORE] = t.older_frees;
    counted[KMEM_FREED_AFTER_LOSS] = t.frees_after_loss;
    counted[KMEM_FREED_UNEXPLAINED] = t.unexplained_frees;
    counted[KMEM_SETTLED] = t.settled_objects;
}
