/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table/overview_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "model/overview/overview_tables.h"
#include "view/table/table_view.h"
#include "view/text/columns.h"

#define INDENT 13

struct screen {
    struct sink *out;
    const struct overview *m;
    const struct text_style *style;
    struct buf words; /* text of the paragraph in progress */
};

static void add_size(struct buf *b, double bytes)
{
    char text[UNITS_TEXT_BYTES];
    buf_addstr(b, units_format_size(text, bytes));
}

/* Appends "12 MiB dirty, "; nothing if the value is not known, or if it is 0 and `also_none` is false. */
static void add_kind(struct screen *s, enum overview_memory kind, const char *what, bool also_none)
{
    uint64_t bytes = overview_memory_of(s->m, kind);
    if (!overview_memory_has(s->m, kind) || (!bytes && !also_none))
        return;
    if (s->words.len)
        buf_addstr(&s->words, ", ");
    add_size(&s->words, (double)bytes);
    buf_printf(&s->words, " %s", what);
}

static void end_line(struct screen *s, const char *label)
{
    if (s->words.len)
        text_paragraph(s->out, s->style, label, INDENT, buf_str(&s->words));
    buf_reset(&s->words);
}

static void write_head(struct screen *s)
{
    char text[UNITS_TEXT_BYTES];
    const struct overview *m = s->m;
    text_add_name(&s->words, s->style, m->host);
    buf_addstr(&s->words, ", Linux ");
    text_add_name(&s->words, s->style, m->release);
    buf_printf(&s->words, ", up %s, %" PRIu32 " processes, ", units_format_duration(text, (double)m->boot_ns),
               m->n_processes);
    text_add_instant(&s->words, m->taken_ns);
    sink_printf(s->out, "%s%s%s\n", text_begin(s->style, TEXT_STRONG), buf_str(&s->words),
                text_end(s->style, TEXT_STRONG));
    buf_reset(&s->words);
}

static void write_notes(struct screen *s)
{
    for (int urgent = 1; urgent >= 0; urgent--)
        vec_each (const struct overview_note, n, &s->m->notes) {
            if (n->urgent != urgent)
                continue;
            sink_text(s->out, text_begin(s->style, urgent ? TEXT_ALARM : TEXT_PLAIN));
            text_add_name(&s->words, s->style, n->text);
            text_paragraph(s->out, s->style, urgent ? "  URGENT" : "  note", 10, buf_str(&s->words));
            sink_text(s->out, text_end(s->style, urgent ? TEXT_ALARM : TEXT_PLAIN));
            buf_reset(&s->words);
        }
    if (!s->m->notes.len)
        sink_text(s->out, "  nothing out of the ordinary\n");
}

static void write_heading(struct screen *s, const char *words)
{
    sink_printf(s->out, "\n%s%s%s\n", text_begin(s->style, TEXT_STRONG), words,
                text_end(s->style, TEXT_STRONG));
}

static void write_memory(struct screen *s)
{
    const struct overview *m = s->m;
    double total = (double)overview_memory_of(m, OVERVIEW_TOTAL);
    write_heading(s, "Memory");
    add_kind(s, OVERVIEW_TOTAL, "in all", true);
    add_kind(s, OVERVIEW_FREE, "free", true);
    add_kind(s, OVERVIEW_CPU_LISTS, "free in lists of single CPUs", false);
    add_kind(s, OVERVIEW_AVAILABLE, "available", true);
    if (overview_memory_has(m, OVERVIEW_AVAILABLE) && total > 0) {
        buf_addstr(&s->words, " (");
        text_add_share(&s->words, (double)overview_memory_of(m, OVERVIEW_AVAILABLE), total);
        buf_addstr(&s->words, ")");
    }
    end_line(s, "  all");
    add_kind(s, OVERVIEW_ANON, "anonymous", true);
    add_kind(s, OVERVIEW_ACTIVE_ANON, "active", true);
    add_kind(s, OVERVIEW_INACTIVE_ANON, "inactive with shmem", true);
    add_kind(s, OVERVIEW_SHMEM, "shmem and tmpfs", true);
    add_kind(s, OVERVIEW_UNEVICTABLE, "unevictable", false);
    add_kind(s, OVERVIEW_LOCKED, "locked", false);
    end_line(s, "  programs");
    add_kind(s, OVERVIEW_CACHED, "cached with shmem", true);
    add_kind(s, OVERVIEW_BUFFERS, "buffers", true);
    add_kind(s, OVERVIEW_ACTIVE_FILE, "active", true);
    add_kind(s, OVERVIEW_INACTIVE_FILE, "inactive", true);
    add_kind(s, OVERVIEW_MAPPED, "mapped", true);
    add_kind(s, OVERVIEW_DIRTY, "dirty", true);
    add_kind(s, OVERVIEW_WRITEBACK, "in writeback", true);
    end_line(s, "  files");
    add_kind(s, OVERVIEW_SLAB_RECLAIMABLE, "slab reclaimable", true);
    add_kind(s, OVERVIEW_SLAB_UNRECLAIMABLE, "slab not", true);
    add_kind(s, OVERVIEW_PAGE_TABLES, "page tables", true);
    add_kind(s, OVERVIEW_SECOND_PAGE_TABLES, "second page tables", false);
    add_kind(s, OVERVIEW_KERNEL_STACKS, "stacks", true);
    add_kind(s, OVERVIEW_VMALLOC, "vmalloc with stacks", true);
    add_kind(s, OVERVIEW_PER_CPU, "per CPU", true);
    add_kind(s, OVERVIEW_ZSMALLOC, "compressed swap", false);
    end_line(s, "  kernel");
    add_kind(s, OVERVIEW_UNACCOUNTED, "in none of these kinds", true);
    add_kind(s, OVERVIEW_COMMITTED, "committed", true);
    add_kind(s, OVERVIEW_COMMIT_LIMIT, "commit limit", true);
    end_line(s, "  other");
}

static void write_huge(struct screen *s)
{
    const struct overview *m = s->m;
    if (*m->thp)
        buf_printf(&s->words, "transparent: %s", m->thp);
    add_kind(s, OVERVIEW_ANON_HUGE, "anonymous", true);
    add_kind(s, OVERVIEW_SHMEM_HUGE, "shmem", false);
    add_kind(s, OVERVIEW_FILE_HUGE, "file", false);
    vec_each (const struct overview_huge, h, &m->huge) {
        if (!h->total && !h->surplus)
            continue;
        buf_addstr(&s->words, s->words.len ? "; of " : "of ");
        add_size(&s->words, (double)h->size_bytes);
        buf_printf(&s->words,
                   ": %" PRIu64 " pages, %" PRIu64 " free, %" PRIu64 " reserved, %" PRIu64 " surplus",
                   h->total, h->free, h->reserved, h->surplus);
    }
    end_line(s, "  huge pages");
}

static void write_swap(struct screen *s)
{
    if (!s->m->swaps.len) {
        text_paragraph(s->out, s->style, "  swap", INDENT, "none");
        return;
    }
    add_kind(s, OVERVIEW_SWAP_TOTAL, "in all", true);
    add_kind(s, OVERVIEW_SWAP_FREE, "free", true);
    add_kind(s, OVERVIEW_SWAP_CACHED, "also in memory", true);
    add_kind(s, OVERVIEW_ZSWAPPED, "in zswap", false);
    add_kind(s, OVERVIEW_ZSWAP, "of memory for it", false);
    end_line(s, "  swap");
}

static void write_table(struct screen *s, struct table *t)
{
    if (table_rows(t)) {
        sink_char(s->out, '\n');
        table_view_text(s->out, t, s->style);
    }
    table_free(t);
}

static bool any_pressure(const struct overview *m)
{
    bool any = false;
    for (int i = 0; i < OVERVIEW_RESOURCES; i++) {
        const struct overview_stall *s = &m->pressure[i].some;
        any |= s->known && (s->avg10 > 0 || s->avg60 > 0 || s->avg300 > 0 || s->last > 0.05);
    }
    return any;
}

static void write_pressure(struct screen *s)
{
    bool known = s->m->pressure[OVERVIEW_PSI_MEMORY].some.known;
    if (any_pressure(s->m)) {
        write_table(s, overview_pressure_table(s->m));
        return;
    }
    text_paragraph(s->out, s->style, "  pressure", INDENT,
                   known ? "none: no task waited for memory, I/O or a CPU in the last five minutes"
                         : "not known");
}

static void add_rate(struct buf *b, bool bytes, double rate)
{
    char text[UNITS_TEXT_BYTES];
    if (rate < 0)
        buf_addch(b, '-');
    else if (bytes)
        buf_addstr(b, units_format_size(text, rate));
    else if (rate > 0 && rate < 10)
        buf_printf(b, "%.2g", rate);
    else
        buf_addstr(b, units_format_count(text, rate));
}

static void add_activity(struct columns *g, const struct overview *m, int i)
{
    const struct overview_count_name *name = &overview_count_names[i];
    double seconds = (double)m->boot_ns / 1e9, total = (double)m->counts.at[i];
    struct buf cell = BUF_INIT;
    columns_row(g);
    buf_addstr(&cell, name->label);
    columns_cell(g, &cell);
    add_rate(&cell, name->bytes, m->rate[i]);
    columns_cell(g, &cell);
    add_rate(&cell, name->bytes, seconds > 0 ? total / seconds : 0);
    columns_cell(g, &cell);
    add_rate(&cell, name->bytes, total);
    columns_cell(g, &cell);
}

/* Counters that are 0 are not shown, except faults and OOM kills, which readers expect. */
static void write_activity(struct screen *s)
{
    struct columns g = {.style = s->style};
    char last[UNITS_TEXT_BYTES + 16] = "LAST", text[UNITS_TEXT_BYTES];
    const struct overview *m = s->m;
    if (m->interval_ns)
        snprintf(last, sizeof(last), "LAST %s, /s", units_format_duration(text, (double)m->interval_ns));
    columns_column(&g, (struct columns_column){.header = "ACTIVITY", .left = true});
    columns_column(&g, (struct columns_column){.header = last});
    columns_column(&g, (struct columns_column){.header = "SINCE BOOT, /s"});
    columns_column(&g, (struct columns_column){.header = "IN ALL"});
    for (int i = 0; i < OVERVIEW_COUNTS; i++) {
        bool always = i == OVERVIEW_FAULTS || i == OVERVIEW_MAJOR_FAULTS || i == OVERVIEW_OOM_KILLS;
        if (overview_count_has(&m->counts, (enum overview_count)i) && (m->counts.at[i] || always))
            add_activity(&g, m, i);
    }
    sink_char(s->out, '\n');
    columns_write(&g, s->out);
    columns_release(&g);
}

static void write_events(struct screen *s)
{
    char text[UNITS_TEXT_BYTES];
    const struct overview *m = s->m;
    for (unsigned i = 0; i < m->n_events && m->interval_ns; i++) {
        const struct overview_event *e = &m->events[i];
        if (!e->known)
            continue;
        buf_printf(&s->words, "%s%s ", s->words.len ? ", " : "",
                   units_format_count(text, (double)e->count * 1e9 / (double)m->interval_ns));
        for (const char *p = e->key; *p; p++)
            buf_addch(&s->words, *p == '_' ? ' ' : *p);
    }
    if (s->words.len)
        buf_addstr(&s->words, " a second");
    end_line(s, "  perf");
}

static void write_unknown(struct screen *s)
{
    vec_each (char *, text, &s->m->unknown) {
        if (s->words.len)
            buf_addstr(&s->words, "; ");
        text_add_name(&s->words, s->style, *text);
    }
    if (s->words.len)
        sink_char(s->out, '\n');
    end_line(s, "Not known");
}

/* With one node, its figures are those of the machine. */
static void write_nodes(struct screen *s)
{
    if (s->m->nodes.len > 1)
        write_table(s, overview_nodes_table(s->m));
}

void overview_write(struct sink *out, const struct overview *m, uint32_t top, const struct text_style *style)
{
    struct screen s = {.out = out, .m = m, .style = style};
    write_head(&s);
    write_notes(&s);
    write_memory(&s);
    write_huge(&s);
    write_swap(&s);
    write_events(&s);
    write_pressure(&s);
    write_table(&s, overview_swaps_table(m));
    write_table(&s, overview_zones_table(m));
    write_nodes(&s);
    write_activity(&s);
    write_table(&s, overview_processes_table(m));
    write_table(&s, overview_cgroups_table(m));
    write_table(&s, overview_slabs_table(m));
    write_table(&s, overview_kills_table(m, top));
    write_unknown(&s);
    buf_release(&s.words);
}

/* ---- one process ---- */

static const char *why_no_mappings(const struct overview_process *p)
{
    return p->query_result == OVERVIEW_MUTE ? "The mappings are not known: the memory map of the process is "
                                              "locked, for example by a system call that hangs."
           : p->query_result == OVERVIEW_REFUSED
               ? "The mappings may not be read: this requires root with CAP_SYS_PTRACE, and some processes "
                 "are protected even then."
           : p->query_result == OVERVIEW_NOT_QUERIED ? "There was no time left to read the mappings."
                                                     : "The process has no mappings.";
}

void mappings_write(struct sink *out, const struct overview_process *p, const struct mappings *maps,
                    uint32_t top, const struct text_style *style)
{
    struct screen s = {.out = out, .style = style};
    struct mapping sum;
    struct table *t = mappings_table(maps, top, &sum);
    text_add_name(&s.words, style, p->name);
    buf_printf(&s.words, " (pid %d), state %c, ", p->pid, p->state);
    add_size(&s.words, (double)overview_process_rss(p));
    buf_addstr(&s.words, " resident: ");
    add_size(&s.words, (double)p->anon_bytes);
    buf_addstr(&s.words, " anonymous, ");
    add_size(&s.words, (double)p->file_bytes);
    buf_addstr(&s.words, " of files, ");
    add_size(&s.words, (double)p->shmem_bytes);
    buf_addstr(&s.words, " shmem; ");
    add_size(&s.words, (double)p->swap_bytes);
    buf_addstr(&s.words, " in swap");
    if (p->pss_known) {
        buf_addstr(&s.words, "; PSS ");
        add_size(&s.words, (double)p->pss_bytes);
    }
    text_paragraph(out, style, "", 0, buf_str(&s.words));
    buf_reset(&s.words);
    if (p->command) {
        text_add_name(&s.words, style, p->command);
        text_paragraph(out, style, "", 2, buf_str(&s.words));
    }
    sink_char(out, '\n');
    if (maps->len)
        table_view_text(out, t, style);
    else
        text_paragraph(out, style, "", 0, why_no_mappings(p));
    if (top && maps->len > top)
        sink_printf(out, "and %zu more mappings (--top 0 shows all)\n", maps->len - top);
    table_free(t);
    buf_release(&s.words);
}
