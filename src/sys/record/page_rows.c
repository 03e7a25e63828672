/* SPDX-License-Identifier: BSD-2-Clause */
/* The accounts of pages as rows of `allium sys kpages`. */
#include "sys/record/kernel_capture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bpf/kpages.h"
#include "sys/record/capture_span.h"

enum column {
    ORDER,
    TYPE,
    PID,
    COMM,
    ALLOCATED,
    ALLOCATIONS,
    FREED,
    FREES,
    FAILURES,
    LIVE,
    USE,
    FALLBACKS,
    CGROUP,
    GFP,
    STACK,
    COLUMNS
};

/* In tables of sys kpages. */
static const char *const names_of_columns[COLUMNS] = {
    [ORDER] = "order",
    [TYPE] = "migrate_type",
    [PID] = "pid",
    [COMM] = "comm",
    [ALLOCATED] = "allocated",
    [ALLOCATIONS] = "allocations",
    [FREED] = "freed",
    [FREES] = "frees",
    [FAILURES] = "failures",
    [LIVE] = "live",
    [USE] = "use",
    [FALLBACKS] = "fallbacks",
    [CGROUP] = "cgroup",
    [GFP] = "gfp",
    [STACK] = "kernel_stack",
};

static const char *const uses[] = {
    [PAGE_USE_OTHER] = "other", [PAGE_USE_SLAB] = "slab", [PAGE_USE_KMALLOC] = "kmalloc"};

const char *const kernel_capture_page_rows_names[KERNEL_CAPTURE_PAGE_ROWS] = {
    [KERNEL_CAPTURE_PAGES] = "kpages",
    [KERNEL_CAPTURE_PAGE_PROCESSES] = "kpages_process",
};

#define BIT(column) (UINT64_C(1) << (column))
#define SUMS                                                                                                 \
    (BIT(ALLOCATED) | BIT(ALLOCATIONS) | BIT(FREED) | BIT(FREES) | BIT(FAILURES) | BIT(LIVE) | BIT(FALLBACKS))

static bool has_stacks(const struct kernel_capture *c)
{
    size_t n;
    const struct page_account *rows = page_accounts_rows(c->pages, &n);
    for (size_t i = 0; i < n; i++)
        if (rows[i].stack && (rows[i].allocations || rows[i].failures)) /* fallbacks have one anyway */
            return true;
    return false;
}

/* Finds the columns, and shows those of these rows. */
static void find_columns(struct table *t, uint64_t has, uint32_t at[static COLUMNS])
{
    t->hidden = ~UINT64_C(0);
    for (int i = 0; i < COLUMNS; i++) {
        at[i] = 0;
        while (strcmp(t->columns[at[i]].name, names_of_columns[i]) != 0)
            at[i]++;
        if (has >> i & 1)
            t->hidden &= ~(UINT64_C(1) << at[i]);
    }
}

static void add_sums(struct table *t, const uint32_t at[static COLUMNS], const struct page_account *a,
                     uint64_t page_bytes)
{
    table_whole(t, at[ALLOCATED], a->allocated_pages * page_bytes);
    table_whole(t, at[ALLOCATIONS], a->allocations);
    table_whole(t, at[FREED], a->freed_here_pages * page_bytes);
    table_whole(t, at[FREES], a->frees_here);
    table_whole(t, at[FAILURES], a->failures);
    table_whole(t, at[LIVE], (a->allocated_pages - a->freed_pages) * page_bytes);
    table_whole(t, at[FALLBACKS], a->fallbacks);
}

void kernel_capture_put_type(const struct kernel_capture *c, struct table *t, uint32_t column, uint32_t type)
{
    char number[16];
    const char *name = c->names.migrate_type ? c->names.migrate_type(c->names.arg, type) : NULL;
    snprintf(number, sizeof(number), "%" PRIu32, type);
    if (type != PAGE_EVENT_NO_TYPE)
        table_text(t, column, name ? name : number);
}

bool kernel_capture_is_tracing(const char *function)
{
    static const char *const begins[] = {"trace_event_raw_event_", "__traceiter_"};
    for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
        if (!strncmp(function, begins[i], strlen(begins[i])))
            return true;
    return false;
}

void kernel_capture_put_page_stack(const struct kernel_capture *c, struct table *t, uint32_t column,
                                   uint32_t number)
{
    uint32_t depth;
    struct buf b = BUF_INIT;
    const uint64_t *stack = page_accounts_stack(c->pages, number, &depth);
    for (uint32_t i = 0; stack && i < depth; i++) {
        c->names.add_call(c->names.arg, &b, stack[i]);
        if (!memchr(b.data, '\n', b.len) && kernel_capture_is_tracing(b.data))
            buf_reset(&b);
        else
            buf_addch(&b, '\n');
    }
    if (b.len)
        table_text(t, column, buf_str(&b));
    buf_release(&b);
}

static void add_row(const struct kernel_capture *c, struct table *t, const uint32_t at[static COLUMNS],
                    const struct page_account *a)
{
    struct buf gfp = BUF_INIT;
    table_row(t);
    table_whole(t, at[ORDER], a->order);
    kernel_capture_put_type(c, t, at[TYPE], a->migrate_type);
    table_text(t, at[COMM], page_accounts_text(c->pages, a->comm));
    table_text(t, at[USE], uses[a->use]);
    if ((a->allocations || a->failures) && c->names.add_gfp) {
        c->names.add_gfp(c->names.arg, &gfp, a->gfp);
        table_text(t, at[GFP], buf_str(&gfp));
    }
    kernel_capture_put_page_stack(c, t, at[STACK], a->stack);
    add_sums(t, at, a, c->page_bytes);
    buf_release(&gfp);
}

static void add_process(const struct kernel_capture *c, struct table *t, const uint32_t at[static COLUMNS],
                        const struct page_account *a)
{
    const char *cgroup = c->names.cgroup ? c->names.cgroup(c->names.arg, a->process) : NULL;
    table_row(t);
    table_whole(t, at[PID], (uint64_t)a->process);
    table_text(t, at[COMM], page_accounts_text(c->pages, a->comm));
    if (cgroup)
        table_text(t, at[CGROUP], cgroup);
    add_sums(t, at, a, c->page_bytes);
}

/* The parts by which rows of pages are told apart. */
static const char *parts_of_pages(bool stacks, bool gfp)
{
    static const char *const parts[2][2] = {{"order,type,comm,use", "order,type,comm,use,gfp"},
                                            {"stack,order,type,comm,use", "stack,order,type,comm,use,gfp"}};
    return parts[stacks][gfp];
}

const char *kernel_capture_add_page_rows(struct kernel_capture *c, enum kernel_capture_page_rows which,
                                         struct table *t)
{
    uint32_t at[COLUMNS];
    size_t n;
    if (!c->pages)
        return NULL;
    if (which == KERNEL_CAPTURE_PAGE_PROCESSES) {
        const struct page_account *rows = capture_span_page_processes(c->span, c->pages, &n);
        find_columns(t, BIT(PID) | BIT(COMM) | (c->names.cgroup ? BIT(CGROUP) : 0) | SUMS, at);
        for (size_t i = 0; i < n; i++)
            add_process(c, t, at, &rows[i]);
        return !n ? NULL : c->names.cgroup ? "process,comm,cgroup" : "process,comm";
    }
    const bool stacks = has_stacks(c);
    const struct page_account *rows = capture_span_pages(c->span, c->pages, &n);
    const uint64_t gfp = c->names.add_gfp ? BIT(GFP) : 0;
    find_columns(t, BIT(ORDER) | BIT(TYPE) | BIT(COMM) | BIT(USE) | gfp | (stacks ? BIT(STACK) : 0) | SUMS,
                 at);
    for (size_t i = 0; i < n; i++)
        add_row(c, t, at, &rows[i]);
    return parts_of_pages(stacks, gfp);
}

void kernel_capture_count_pages(const struct kernel_capture *c, uint64_t counted[static SYS_COUNTS])
{
    const struct page_totals t = capture_span_page_totals(c->span, c->pages);
    counted[SYS_RING_FULL] = c->lost;
    counted[KPAGES_REUSED] = t.pages_without_free;
    counted[KPAGES_FREED_BEFORE] = t.unmatched_pages;
    counted[KPAGES_FREED_IN_PARTS] = t.frees_in_parts;
    counted[KPAGES_FAILED] = t.failures;
}
