/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/import/import_moment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/sys/kernel_store.h"
#include "collect/kernel/kernel_state.h"
#include "collect/kernel/trace/trace_lines.h"
#include "sys/record/import/slab_import.h"
#include "view/text/text.h"

/* ---- alloc_traces ---- */

/* How long a tick is, as the kernel's configuration says it; 0: not known. */
static uint64_t tick_of(const struct kernel_state *s)
{
    static const char key[] = "\nCONFIG_HZ=";
    const char *config = kernel_state_text(s, KERNEL_STATE_CONFIG), *at = config ? strstr(config, key) : NULL;
    const uint64_t hz = at ? strtoull(at + sizeof(key) - 1, NULL, 10) : 0;
    return hz && hz <= 10000 ? 1000000000u / hz : 0;
}

static int account(struct import_trace *t, uint64_t written_ns, struct error *e)
{
    struct kernel_state state = {.texts = {0}};
    const char *folder = t->request->state;
    struct kernel_identity untold = {.of = "trace"};
    int bad = import_trace_use_names(t, &untold, e);
    if (bad)
        return bad;
    if (folder)
        kernel_state_read(&state, strcmp(folder, "/") ? folder : "",
                          KERNEL_STATE_MEMORY | KERNEL_STATE_KERNEL);
    slab_traces_find_sizes(&t->slabs, kernel_state_text(&state, KERNEL_STATE_SLAB));
    t->tick_ns = tick_of(&state);
    slab_import_add(t->import, &t->slabs, t->tick_ns, written_ns);
    kernel_state_release(&state);
    return t->slabs.all.len && !kernel_import_events(t->import)
               ? error_set(e, ENODATA,
                           "%s has only free_traces, which tell of no memory: give alloc_traces, too",
                           t->request->file)
               : 0;
}

int import_moment_slab_folder(struct import_trace *t, struct error *e)
{
    uint64_t written_ns;
    t->slabs.code_sizes = true;
    int bad = slab_traces_read_folder(&t->slabs, t->request->file, &written_ns, e);
    return bad ? bad : account(t, written_ns, e);
}

#define TEXT_BYTES_MAX (256u << 20)
#define READ_BYTES     (64u << 10)
#define CACHE_BYTES    128

int import_moment_slab_file(struct import_trace *t, struct packed_input *in, struct error *e)
{
    struct buf text = BUF_INIT;
    char cache[CACHE_BYTES], *bytes = mem_alloc(READ_BYTES);
    size_t taken = 0;
    int bad;
    do {
        bad = packed_input_read(in, bytes, READ_BYTES, &taken, e);
        buf_add(&text, bytes, bad ? 0 : taken);
    } while (!bad && taken && text.len < TEXT_BYTES_MAX);
    const bool is_freed = slab_traces_name(t->request->file, cache, sizeof(cache));
    t->slabs.code_sizes = true;
    slab_traces_parse(&t->slabs, cache, is_freed, buf_str(&text));
    const int accounted = account(t, packed_input_written_ns(in), bad ? NULL : e);
    free(bytes);
    buf_release(&text);
    return bad ? bad : accounted;
}

enum slab_column {
    CACHE,
    SITE,
    OBJECTS,
    OBJECT,
    LIVE,
    WASTE,
    AGE_MIN,
    AGE_MEAN,
    AGE_MAX,
    PID_MIN,
    PID_MAX,
    CPUS,
    NODES,
    STACK,
    SLAB_COLUMNS
};

static const struct table_column slab_columns[] = {
    [CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT},
    [SITE] = {"call_site", TABLE_PLAIN, TABLE_TEXT},
    [OBJECTS] = {"objects", TABLE_COUNT, TABLE_WHOLE},
    [OBJECT] = {"object", TABLE_BYTES, TABLE_WHOLE},
    [LIVE] = {"live", TABLE_BYTES, TABLE_WHOLE},
    [WASTE] = {"waste", TABLE_BYTES, TABLE_WHOLE},
    [AGE_MIN] = {"age_min_ticks", TABLE_PLAIN, TABLE_WHOLE},
    [AGE_MEAN] = {"age_mean_ticks", TABLE_PLAIN, TABLE_WHOLE},
    [AGE_MAX] = {"age_max_ticks", TABLE_PLAIN, TABLE_WHOLE},
    [PID_MIN] = {"pid_min", TABLE_PLAIN, TABLE_WHOLE},
    [PID_MAX] = {"pid_max", TABLE_PLAIN, TABLE_WHOLE},
    [CPUS] = {"cpus", TABLE_PLAIN, TABLE_TEXT},
    [NODES] = {"nodes", TABLE_PLAIN, TABLE_TEXT},
    [STACK] = {"stack", TABLE_PLAIN, TABLE_LINES},
};

/* Writes calls with the names that the rest of the recording uses; a call without a name is "[unknown]". */
static void put_calls(const struct import_trace *t, struct table *table, uint32_t column, const char *lines)
{
    struct buf b = BUF_INIT;
    for (const char *line = lines; *line; line += *line == '\n') {
        const size_t len = strcspn(line, "\n");
        const char *name = kernel_import_call_text(t->import, kernel_import_call(t->import, line, len));
        buf_printf(&b, "%s%s", b.len ? "\n" : "", *name ? name : "[unknown]");
        line += len;
    }
    if (b.len)
        table_text(table, column, buf_str(&b));
    buf_release(&b);
}

static void put_trace(const struct import_trace *t, struct table *table, const struct slab_trace *trace)
{
    table_row(table);
    if (*trace->cache)
        table_text(table, CACHE, trace->cache);
    put_calls(t, table, SITE, trace->site);
    table_whole(table, OBJECTS, trace->objects);
    if (trace->object_bytes) {
        table_whole(table, OBJECT, trace->object_bytes);
        table_whole(table, LIVE, trace->object_bytes * trace->objects);
    }
    table_whole(table, WASTE, trace->waste_bytes);
    table_whole(table, AGE_MIN, trace->age_min);
    table_whole(table, AGE_MEAN, trace->age_mean);
    table_whole(table, AGE_MAX, trace->age_max);
    table_whole(table, PID_MIN, trace->pid_min);
    table_whole(table, PID_MAX, trace->pid_max);
    if (*trace->cpus)
        table_text(table, CPUS, trace->cpus);
    if (*trace->nodes)
        table_text(table, NODES, trace->nodes);
    put_calls(t, table, STACK, trace->stack);
}

static int store_slabs(struct recording *r, const struct import_trace *t, bool freed, const char *name,
                       struct error *e)
{
    struct table *table = table_new("sys-slab-traces", 1, slab_columns, SLAB_COLUMNS);
    table->hidden = freed ? UINT64_C(1) << OBJECT | UINT64_C(1) << LIVE | UINT64_C(1) << WASTE : 0;
    vec_each (const struct slab_trace, trace, &t->slabs.all)
        if (trace->is_freed == freed)
            put_trace(t, table, trace);
    int bad = table_rows(table)
                  ? recording_put_rows(r, name, table, kernel_import_capture(t->import)->ended_ns, e)
                  : 0;
    table_free(table);
    return bad;
}

/* ---- page_owner ---- */

int import_moment_pages(struct import_trace *t, struct packed_input *in, struct error *e)
{
    struct page_owner p = {.times = 0};
    struct trace_lines *lines = trace_lines_new(in);
    struct kernel_identity untold = {.of = "trace"};
    const char *line;
    size_t len;
    int more = 0, bad = import_trace_use_names(t, &untold, e);
    while (!bad && (more = trace_lines_next(lines, &line, &len, e)) > 0)
        if (page_owner_line(&p, line, len))
            page_owner_import_add(t->import, &t->owners, &p.block);
    if (!bad && page_owner_end(&p))
        page_owner_import_add(t->import, &t->owners, &p.block);
    page_owner_import_end(t->import, p.broken, packed_input_written_ns(in));
    page_owner_release(&p);
    trace_lines_free(lines);
    return bad ? bad : more;
}

enum page_column {
    ORDER,
    TYPE,
    BLOCK_TYPE,
    GFP,
    PID,
    TGID,
    COMM,
    BLOCKS,
    PAGES_LIVE,
    FIRST,
    LAST,
    FREED_FIRST,
    FREED_LAST,
    PAGE_STACK,
    PAGE_COLUMNS
};

static const struct table_column page_columns[] = {
    [ORDER] = {"order", TABLE_PLAIN, TABLE_WHOLE},
    [TYPE] = {"migrate_type", TABLE_PLAIN, TABLE_TEXT},
    [BLOCK_TYPE] = {"block_type", TABLE_PLAIN, TABLE_TEXT},
    [GFP] = {"gfp", TABLE_PLAIN, TABLE_TEXT},
    [PID] = {"tid", TABLE_PLAIN, TABLE_WHOLE},
    [TGID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [BLOCKS] = {"blocks", TABLE_COUNT, TABLE_WHOLE},
    [PAGES_LIVE] = {"live", TABLE_BYTES, TABLE_WHOLE},
    [FIRST] = {"first", TABLE_DURATION, TABLE_WHOLE},
    [LAST] = {"last", TABLE_DURATION, TABLE_WHOLE},
    [FREED_FIRST] = {"freed_first", TABLE_DURATION, TABLE_WHOLE},
    [FREED_LAST] = {"freed_last", TABLE_DURATION, TABLE_WHOLE},
    [PAGE_STACK] = {"stack", TABLE_PLAIN, TABLE_LINES},
};

static void put_known(struct table *table, uint32_t column, uint64_t value)
{
    if (value != PAGE_OWNER_UNKNOWN)
        table_whole(table, column, value);
}

static void put_owner(const struct import_trace *t, struct table *table, const struct page_owner_row *row)
{
    const struct kernel_capture *c = kernel_import_capture(t->import);
    const char *comm = t->owners.texts.at[row->comm];
    table_row(table);
    table_whole(table, ORDER, row->order);
    kernel_capture_put_type(c, table, TYPE, row->type);
    kernel_capture_put_type(c, table, BLOCK_TYPE, row->block_type);
    if (c->names.add_gfp)
        kernel_capture_put_name(table, GFP, c->names.add_gfp, c->names.arg, row->gfp);
    put_known(table, PID, row->pid);
    put_known(table, TGID, row->tgid);
    if (*comm)
        table_text(table, COMM, comm);
    table_whole(table, BLOCKS, row->blocks);
    table_whole(table, PAGES_LIVE, (row->blocks << row->order) * (uint64_t)sysconf(_SC_PAGESIZE));
    put_known(table, FIRST, row->first_ns);
    put_known(table, LAST, row->last_ns);
    put_known(table, FREED_FIRST, row->freed_first);
    put_known(table, FREED_LAST, row->freed_last);
    put_calls(t, table, PAGE_STACK, t->owners.texts.at[row->stack]);
}

static int store_owners(struct recording *r, const struct import_trace *t, struct error *e)
{
    struct table *table = table_new("sys-page-owner", 1, page_columns, PAGE_COLUMNS);
    vec_each (const struct page_owner_row, row, &t->owners.all)
        put_owner(t, table, row);
    int bad = recording_put_rows(r, "sys_page_owner", table, kernel_import_capture(t->import)->ended_ns, e);
    table_free(table);
    return bad;
}

/* ---- both ---- */

int import_moment_store(struct recording *r, const struct import_trace *t, struct error *e)
{
    if (t->format == IMPORT_PAGE_OWNER)
        return store_owners(r, t, e);
    if (t->format != IMPORT_SLAB_TRACES)
        return 0;
    int bad = store_slabs(r, t, false, "sys_slab_traces", e);
    return bad ? bad : store_slabs(r, t, true, "sys_slab_freed", e);
}

bool import_moment_is(const struct import_trace *t)
{
    return t->format == IMPORT_ALLOCINFO || t->format == IMPORT_SLAB_TRACES || t->format == IMPORT_PAGE_OWNER;
}

static void add_pages(const struct page_totals *t, struct buf *b)
{
    char size[UNITS_TEXT_BYTES];
    const double page = (double)sysconf(_SC_PAGESIZE);
    buf_printf(b, "\n  live       %s in ", units_format_size(size, (double)t->live_pages * page));
    text_add_number(b, t->allocations, "block");
    buf_printf(b, "; %s of it hold objects of slab caches",
               units_format_size(size, (double)t->live_slab_pages * page));
}

void import_moment_add_summary(const struct import_trace *t, struct buf *b)
{
    const struct kernel_capture *c = kernel_import_capture(t->import);
    if (t->format == IMPORT_PAGE_OWNER) {
        buf_addstr(b, "the pages that are in use, and who allocated them");
        add_pages(page_accounts_totals(c->pages), b);
        return;
    }
    buf_addstr(b, "what the kernel holds, by ");
    text_add_number(b, kmem_accounts_totals(c->accounts)->events,
                    t->format == IMPORT_ALLOCINFO ? "call" : "stack");
    kernel_store_add_live(b, c);
}
