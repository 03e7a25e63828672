/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/import/boot_report.h"

#include <string.h>

#include "base/units.h"
#include "model/table/table.h"
#include "view/text/text.h"

#define CACHES_SHOWN  5u
#define STACKS_SHOWN  3u
#define CALLERS_SHOWN 4u
#define LEADING_SHARE 20u /* one part of so many */

static void add_size(struct buf *b, uint64_t bytes)
{
    char size[UNITS_TEXT_BYTES];
    buf_addstr(b, units_format_size(size, (double)bytes));
}

static void add_sizes(struct buf *b, uint64_t low, uint64_t high)
{
    char from[UNITS_TEXT_BYTES], to[UNITS_TEXT_BYTES];
    units_format_size(from, (double)low);
    units_format_size(to, (double)high);
    if (strcmp(from, to) != 0)
        buf_printf(b, "%s to ", from);
    buf_addstr(b, to);
}

bool boot_report_leads(const struct early_memory *m)
{
    const struct early_sums s = early_objects_sums(m->objects);
    return m->has_objects && s.high_bytes * LEADING_SHARE > s.active_bytes;
}

void boot_report_add_line(struct buf *b, const struct early_memory *m)
{
    char first[UNITS_TEXT_BYTES];
    const struct early_sums s = early_objects_sums(m->objects);
    if (m->first_ns)
        buf_printf(b, "before the first event, at %s: ", units_format_duration(first, (double)m->first_ns));
    else
        buf_addstr(b, "before the first event, when the kernel had no clock yet: ");
    if (m->has_objects) {
        add_sizes(b, s.low_bytes, s.high_bytes);
        buf_addstr(b, " of the objects, ");
        text_add_share(b, (double)s.low_bytes, (double)s.active_bytes);
        buf_addstr(b, " to ");
        text_add_share(b, (double)s.high_bytes, (double)s.active_bytes);
        buf_addstr(b, " of the ");
        add_size(b, s.active_bytes);
        buf_addstr(b, " in use");
    } else {
        buf_addstr(b, "objects are not known (no /proc/slabinfo)");
    }
    buf_addstr(b, "; ");
    if (m->has_reserved)
        add_size(b, m->reserved.reserved);
    buf_addstr(b, m->has_reserved ? " were reserved" : "what was reserved is no longer in the kernel's log");
}

static void add_label(struct buf *b, const char *label)
{
    buf_printf(b, "  %-11s", label);
}

static void add_reserved(struct buf *b, const struct early_reserved *r)
{
    add_label(b, "reserved");
    add_size(b, r->reserved);
    buf_addstr(b, " of ");
    add_size(b, r->total);
    buf_addstr(b, " before there was an allocator; in the image: code ");
    add_size(b, r->code);
    buf_addstr(b, ", data ");
    add_size(b, r->rwdata + r->rodata + r->bss);
    buf_addstr(b, ", initialisation ");
    add_size(b, r->init);
    buf_addch(b, '\n');
}

static void add_caches(struct buf *b, const struct early_memory *m)
{
    size_t n;
    unsigned shown = 0;
    const struct early_row *rows = early_objects_rows(m->objects, &n);
    for (size_t i = 0; i < n && shown < CACHES_SHOWN; i++) {
        const struct early_row *r = &rows[i];
        if (!r->high)
            continue;
        add_label(b, shown++ ? "" : "by cache");
        add_sizes(b, r->low * r->stride_bytes, r->high * r->stride_bytes);
        buf_addstr(b, " in ");
        if (r->low != r->high) {
            text_add_number(b, r->low, NULL);
            buf_addstr(b, " to ");
        }
        text_add_number(b, r->high, "object");
        buf_printf(b, " of %s\n", r->caches);
    }
}

static void add_frees(struct buf *b, const struct early_memory *m)
{
    uint64_t known = 0, unknown = 0;
    vec_each (const struct early_freed, f, &m->freed)
        *(*f->cache ? &known : &unknown) += f->n;
    add_label(b, "freed");
    text_add_number(b, known + unknown, "object");
    buf_addstr(b, " that are older than the trace: ");
    text_add_number(b, unknown, NULL);
    buf_addstr(b, " of kmalloc(), ");
    text_add_number(b, known, NULL);
    buf_addstr(b, " of other caches\n");
}

/* The trace's own memory is there because the boot is traced. */
static void add_own(struct buf *b, const struct early_memory *m)
{
    const struct early_sums s = early_objects_sums(m->objects);
    add_label(b, "tracing");
    add_size(b, m->trace.buffer_bytes);
    buf_addstr(b, " of buffers, and ");
    add_sizes(b, s.own_low_bytes, s.own_high_bytes);
    buf_addstr(b, " of older objects for them and for events, which are not in the figures above\n");
}

/* The first functions of a stack, without offsets. */
static void add_callers(struct buf *b, const char *stack)
{
    unsigned n = 0;
    for (const char *at = stack; *at && n < CALLERS_SHOWN; at += *at == '\n') {
        buf_printf(b, "%s%.*s", n++ ? ", " : "", (int)strcspn(at, "+\n"), at);
        at += strcspn(at, "\n");
    }
}

static void add_stacks(struct buf *b, const struct early_memory *m)
{
    if (!m->stacks.len)
        return;
    add_label(b, "by stack");
    text_add_number(b, m->stacks_objects, "object");
    buf_addstr(b, " of ");
    add_size(b, m->stacks_bytes);
    buf_addstr(b, " are older, the tracing's own with them, by the kernel's records (slub_debug=U)\n");
    for (size_t i = 0; i < m->stacks.len && i < STACKS_SHOWN; i++) {
        const struct early_stack *s = &m->stacks.at[i];
        add_label(b, "");
        add_size(b, s->bytes);
        buf_printf(b, " in %s: ", s->trace->cache);
        add_callers(b, *s->trace->stack ? s->trace->stack : s->trace->site);
        buf_addch(b, '\n');
    }
}

void boot_report_add_details(struct buf *b, const struct early_memory *m)
{
    if (m->lost)
        buf_addstr(b, "  lost       events are missing, so there is no lower bound\n");
    if (m->has_reserved)
        add_reserved(b, &m->reserved);
    add_caches(b, m);
    add_frees(b, m);
    add_own(b, m);
    add_label(b, "pages");
    buf_addstr(b, "at most ");
    add_size(b, m->pages_bytes);
    buf_addstr(b, ": in use, named by no line of /proc/meminfo, and not in the trace\n");
    add_stacks(b, m);
}

/* ---- the recording ---- */

enum cache_column {
    CACHES,
    STRIDE,
    ACTIVE,
    TRACED,
    LOW,
    HIGH,
    LOW_BYTES,
    HIGH_BYTES,
    OWN_LOW,
    OWN_HIGH,
    FREES
};

static const struct table_column cache_columns[] = {
    [CACHES] = {"caches", TABLE_PLAIN, TABLE_TEXT},
    [STRIDE] = {"object", TABLE_BYTES, TABLE_WHOLE},
    [ACTIVE] = {"active", TABLE_PLAIN, TABLE_WHOLE},
    [TRACED] = {"traced", TABLE_PLAIN, TABLE_WHOLE},
    [LOW] = {"older_low", TABLE_PLAIN, TABLE_WHOLE},
    [HIGH] = {"older_high", TABLE_PLAIN, TABLE_WHOLE},
    [LOW_BYTES] = {"older_low_memory", TABLE_BYTES, TABLE_WHOLE},
    [HIGH_BYTES] = {"older_high_memory", TABLE_BYTES, TABLE_WHOLE},
    [OWN_LOW] = {"tracing_low", TABLE_PLAIN, TABLE_WHOLE},
    [OWN_HIGH] = {"tracing_high", TABLE_PLAIN, TABLE_WHOLE},
    [FREES] = {"frees_of_older", TABLE_PLAIN, TABLE_WHOLE},
};

static int store_caches(struct recording *r, const struct early_memory *m, uint64_t taken_ns, struct error *e)
{
    size_t n;
    const struct early_row *rows = early_objects_rows(m->objects, &n);
    struct table *t =
        table_new("sys-before", 1, cache_columns, sizeof(cache_columns) / sizeof(*cache_columns));
    for (size_t i = 0; i < n; i++) {
        const struct early_row *row = &rows[i];
        if (!row->active && !row->traced)
            continue;
        table_row(t);
        table_text(t, CACHES, row->caches);
        table_whole(t, STRIDE, row->stride_bytes);
        table_whole(t, ACTIVE, row->active);
        table_whole(t, TRACED, row->traced);
        table_whole(t, LOW, row->low);
        table_whole(t, HIGH, row->high);
        table_whole(t, LOW_BYTES, row->low * row->stride_bytes);
        table_whole(t, HIGH_BYTES, row->high * row->stride_bytes);
        table_whole(t, OWN_LOW, row->own_low);
        table_whole(t, OWN_HIGH, row->own_high);
        table_whole(t, FREES, row->frees);
    }
    int bad = recording_put_rows(r, "sys_before", t, taken_ns, e);
    table_free(t);
    return bad;
}

enum stack_column { CACHE, SITE, OBJECTS, MEMORY, STACK };

static const struct table_column stack_columns[] = {
    [CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT},    [SITE] = {"call_site", TABLE_PLAIN, TABLE_TEXT},
    [OBJECTS] = {"older", TABLE_PLAIN, TABLE_WHOLE}, [MEMORY] = {"older_memory", TABLE_BYTES, TABLE_WHOLE},
    [STACK] = {"stack", TABLE_PLAIN, TABLE_LINES},
};

static int store_stacks(struct recording *r, const struct early_memory *m, uint64_t taken_ns, struct error *e)
{
    struct table *t =
        table_new("sys-before-stacks", 1, stack_columns, sizeof(stack_columns) / sizeof(*stack_columns));
    vec_each (const struct early_stack, s, &m->stacks) {
        table_row(t);
        table_text(t, CACHE, s->trace->cache);
        table_text(t, SITE, s->trace->site);
        table_whole(t, OBJECTS, s->objects);
        table_whole(t, MEMORY, s->bytes);
        table_text(t, STACK, s->trace->stack);
    }
    int bad = m->stacks.len ? recording_put_rows(r, "sys_before_stacks", t, taken_ns, e) : 0;
    table_free(t);
    return bad;
}

enum site_column { CALL, RECORDED, TRACED_LIVE };

static const struct table_column site_columns[] = {
    [CALL] = {"call_site", TABLE_PLAIN, TABLE_TEXT},
    [RECORDED] = {"recorded", TABLE_PLAIN, TABLE_WHOLE},
    [TRACED_LIVE] = {"traced", TABLE_PLAIN, TABLE_WHOLE},
};

static int store_sites(struct recording *r, const struct early_memory *m, uint64_t taken_ns, struct error *e)
{
    struct table *t =
        table_new("sys-before-sites", 1, site_columns, sizeof(site_columns) / sizeof(*site_columns));
    vec_each (const struct early_site, s, &m->sites) {
        table_row(t);
        table_text(t, CALL, s->site);
        table_whole(t, RECORDED, s->recorded);
        table_whole(t, TRACED_LIVE, s->traced);
    }
    int bad = m->sites.len ? recording_put_rows(r, "sys_before_sites", t, taken_ns, e) : 0;
    table_free(t);
    return bad;
}

int boot_report_store(struct recording *r, const struct early_memory *m, uint64_t taken_ns, struct error *e)
{
    struct buf line = BUF_INIT, details = BUF_INIT;
    boot_report_add_line(&line, m);
    boot_report_add_details(&details, m);
    int bad = recording_set_text(r, BOOT_REPORT_LINE, buf_str(&line), e);
    bad = bad ? bad : recording_set_text(r, BOOT_REPORT_DETAILS, buf_str(&details), e);
    bad = bad ? bad : recording_set_number(r, BOOT_REPORT_LEADS, boot_report_leads(m), e);
    bad = bad ? bad : store_caches(r, m, taken_ns, e);
    bad = bad ? bad : store_stacks(r, m, taken_ns, e);
    bad = bad ? bad : store_sites(r, m, taken_ns, e);
    buf_release(&line);
    buf_release(&details);
    return bad;
}
