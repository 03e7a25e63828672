/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table/frag_view.h"

#include <inttypes.h>

#include "base/units.h"
#include "model/kernel/frag_tables.h"
#include "view/table/table_view.h"
#include "view/text/columns.h"

#define INDENT 13

struct screen {
    struct sink *out;
    const struct frag_report *r;
    const struct text_style *style;
    struct buf words; /* text of the paragraph in progress */
};

static void add_size(struct buf *b, uint64_t bytes)
{
    char text[UNITS_TEXT_BYTES];
    buf_addstr(b, units_format_size(text, (double)bytes));
}

static void add_known(struct buf *b, const struct frag_range *r)
{
    if (r->known)
        add_size(b, r->high);
    else
        buf_addch(b, '-');
}

/* "1.2 MiB to 3.1 MiB"; "0 B" if both are the same. */
static void add_range(struct buf *b, const struct frag_range *r)
{
    if (r->known && r->low != r->high) {
        add_size(b, r->low);
        buf_addstr(b, " to ");
    }
    add_known(b, r);
}

static void add_share_of(struct buf *b, uint64_t part, uint64_t whole)
{
    if (!whole)
        return;
    buf_addstr(b, " (");
    text_add_share(b, (double)part, (double)whole);
    buf_addch(b, ')');
}

static void end_line(struct screen *s, const char *label)
{
    text_paragraph(s->out, s->style, label, INDENT, buf_str(&s->words));
    buf_reset(&s->words);
}

/* `why`: on this machine. */
static void add_not_known(struct screen *s, const char *why)
{
    buf_printf(&s->words, "not known: %s", s->r->recorded ? "the recording does not have it" : why);
}

/* ---- sentences ---- */

static const struct frag_zone *largest_zone(const struct frag *f)
{
    const struct frag_zone *largest = NULL;
    vec_each (const struct frag_zone, z, &f->zones)
        if (!largest || z->free_pages > largest->free_pages)
            largest = z;
    return largest;
}

/* The answer, before any detail. */
static void write_headline(struct screen *s)
{
    const struct frag *f = s->r->frag;
    const struct frag_zone *z = largest_zone(f);
    if (f->slab_lost.known) {
        add_size(&s->words, f->slab_lost.high);
        buf_addstr(&s->words, " of ");
        add_size(&s->words, f->slab[FRAG_BYTES].high);
        buf_addstr(&s->words, " of slabs");
        add_share_of(&s->words, f->slab_lost.high, f->slab[FRAG_BYTES].high);
        buf_addstr(&s->words, " hold no object, ");
        add_size(&s->words, f->caches.at[0].lost.high);
        buf_addstr(&s->words, " of it in ");
        text_add_name(&s->words, s->style, f->caches.at[0].of->name);
    } else {
        buf_addstr(&s->words, "slabs are not known");
    }
    if (z && z->highest_order >= 0) {
        buf_addstr(&s->words, "; the largest free block has ");
        add_size(&s->words, f->of->page_bytes << z->highest_order);
    }
    buf_addstr(&s->words, ", ");
    text_add_instant(&s->words, s->r->taken_ns);
    sink_text(s->out, text_begin(s->style, TEXT_STRONG));
    text_paragraph(s->out, s->style, "", 0, buf_str(&s->words));
    sink_text(s->out, text_end(s->style, TEXT_STRONG));
    buf_reset(&s->words);
}

static void write_slab(struct screen *s)
{
    const struct frag *f = s->r->frag;
    const struct frag_range *at = f->slab;
    if (!f->slab_lost.known) {
        add_not_known(s, "/proc/slabinfo and /sys/kernel/slab are for root");
        end_line(s, "  slab");
        return;
    }
    add_known(&s->words, &at[FRAG_FREE]);
    buf_addstr(&s->words, " free objects in partly used slabs, ");
    add_known(&s->words, &at[FRAG_PADDING]);
    buf_addstr(&s->words, " padding between objects, ");
    add_known(&s->words, &at[FRAG_TAILS]);
    buf_addstr(&s->words, " tails of slabs; ");
    add_range(&s->words, &at[FRAG_CPU_FREE]);
    buf_addstr(&s->words, " more may be free objects in CPUs' slabs");
    if (at[FRAG_SHEAF_FREE].known && at[FRAG_SHEAF_FREE].high) {
        buf_addstr(&s->words, ", up to ");
        add_known(&s->words, &at[FRAG_SHEAF_FREE]);
        buf_addstr(&s->words, " in sheaves");
    }
    end_line(s, "  slab");
    add_range(&s->words, &at[FRAG_SHRINK]);
    buf_addstr(&s->words, at[FRAG_SHRINK].known ? " can be freed by writing 1 to /sys/kernel/slab/*/shrink"
                                                : ": not known, as /sys/kernel/slab cannot be read");
    end_line(s, "  shrink");
}

/* Sites are sorted: the first one pins most. */
static void add_leader(struct screen *s)
{
    const struct table_value *site = table_at(s->r->sites, 0, FRAG_SITE),
                             *low = table_at(s->r->sites, 0, FRAG_SITE_PINNED_LOW),
                             *high = table_at(s->r->sites, 0, FRAG_SITE_PINNED_HIGH);
    const struct frag_range pinned = {low->known && high->known, low->whole, high->whole};
    if (!pinned.known || !pinned.high || !site->known)
        return;
    buf_addstr(&s->words, ", ");
    add_range(&s->words, &pinned);
    buf_addstr(&s->words, " of it by objects of ");
    text_add_name(&s->words, s->style, site->text);
}

static void add_pinned(struct screen *s)
{
    bool low_known, high_known;
    const struct frag_range pinned = {s->r->pins_known,
                                      frag_column_sum(s->r->sites, FRAG_SITE_PINNED_LOW, &low_known),
                                      frag_column_sum(s->r->sites, FRAG_SITE_PINNED_HIGH, &high_known)};
    if (!s->r->pins_known || !high_known) {
        buf_addstr(&s->words, "not known: this recording has only sums by site");
    } else {
        add_range(&s->words, &pinned);
        buf_addstr(
            &s->words,
            " of free places in half-empty slabs, kept from being freed by live objects of the capture");
        add_leader(s);
    }
    end_line(s, "  pinned");
}

static void write_internal(struct screen *s)
{
    const struct table *t = s->r->sites;
    if (!t) {
        buf_addstr(&s->words, "not known without a capture: write a command after --, or --from FILE");
        end_line(s, "  internal");
        return;
    }
    bool live_known, known;
    uint64_t slack = frag_column_sum(t, FRAG_SITE_LIVE_SLACK, &live_known), whole;
    if (live_known) {
        whole = frag_column_sum(t, FRAG_SITE_LIVE, &known);
    } else {
        slack = frag_column_sum(t, FRAG_SITE_SLACK, &known);
        whole = frag_column_sum(t, FRAG_SITE_ALLOCATED, &known);
    }
    add_size(&s->words, slack);
    add_share_of(&s->words, slack, whole);
    buf_addstr(&s->words, live_known ? " more than requested in " : " more than requested was allocated in ");
    add_size(&s->words, whole);
    buf_addstr(&s->words, live_known ? " of live objects of the capture" : ", live or not");
    if (s->r->lost) {
        buf_addstr(&s->words, "; ");
        text_add_number(&s->words, s->r->lost, "event");
        buf_addstr(&s->words, " lost: figures of the capture may be too high or too low");
    }
    end_line(s, "  internal");
    add_pinned(s);
}

static void add_zone(struct screen *s, const struct frag_zone *z)
{
    const struct memory_state *m = s->r->frag->of;
    const unsigned order = m->block_order;
    buf_printf(&s->words, "%snode %u ", s->words.len ? "; " : "", z->of->node);
    text_add_name(&s->words, s->style, z->of->name);
    buf_addch(&s->words, ' ');
    add_size(&s->words, z->free_pages * m->page_bytes);
    buf_addstr(&s->words, " free");
    if (z->highest_order >= 0) {
        buf_addstr(&s->words, ", largest block ");
        add_size(&s->words, m->page_bytes << z->highest_order);
    }
    if (!order || order >= z->of->orders || !z->free_pages)
        return;
    buf_printf(&s->words, ", %.1f %% in blocks below ", (double)z->unusable[order] / 10);
    add_size(&s->words, m->page_bytes << order);
}

static void write_external(struct screen *s)
{
    vec_each (const struct frag_zone, z, &s->r->frag->zones)
        add_zone(s, z);
    if (!s->words.len)
        add_not_known(s, "/proc/buddyinfo cannot be read");
    end_line(s, "  external");
}

static void write_compaction(struct screen *s)
{
    char text[UNITS_TEXT_BYTES];
    uint64_t stalls, failed, wakes, huge;
    const struct frag_report *r = s->r;
    if (r->before)
        buf_printf(&s->words, "in the last %s ", units_format_duration(text, (double)r->interval_ns));
    else
        buf_addstr(&s->words, "since boot ");
    if (!frag_compaction(r, MEMORY_COMPACT_STALLS, &stalls) ||
        !frag_compaction(r, MEMORY_COMPACT_FAILED, &failed) ||
        !frag_compaction(r, MEMORY_COMPACT_DAEMON_WAKES, &wakes)) {
        buf_addstr(&s->words, "not known: /proc/vmstat does not count it");
    } else {
        text_add_words(&s->words, stalls, "allocation{s} waited for it");
        buf_addstr(&s->words, ", of which ");
        text_add_words(&s->words, failed, "in vain; kcompactd woke ");
        text_add_words(&s->words, wakes, "time{s}");
    }
    if (frag_compaction(r, MEMORY_HUGE_FAILED, &huge)) {
        buf_addstr(&s->words, "; ");
        text_add_words(&s->words, huge, "huge page{s} {was|were} not to be had");
    }
    end_line(s, "  compaction");
}

/* Rows are sorted: the first one has most. */
static void write_fallbacks(struct screen *s)
{
    bool known;
    const struct table *t = s->r->fallbacks;
    if (!t) {
        buf_addstr(&s->words, "not known without a capture: write a command after --, or --from FILE");
        end_line(s, "  taken");
        return;
    }
    const uint64_t all = frag_column_sum(t, FRAG_FALLBACKS, &known);
    text_add_words(&s->words, all, "request{s} took a block of another migrate type");
    if (all) {
        const struct table_value *first = table_at(t, 0, FRAG_FALLBACKS),
                                 *comm = table_at(t, 0, FRAG_FALLBACK_COMM);
        buf_addstr(&s->words, ", of which ");
        text_add_number(&s->words, first->whole, NULL);
        buf_addstr(&s->words, " by ");
        text_add_name(&s->words, s->style, comm->text);
    }
    end_line(s, "  taken");
}

static void write_vmalloc(struct screen *s)
{
    const struct frag_vmalloc *v = &s->r->frag->vmalloc;
    if (!s->r->frag->of->areas_known) {
        add_not_known(s, "/proc/vmallocinfo is for root");
        end_line(s, "  vmalloc");
        return;
    }
    add_size(&s->words, v->bytes);
    buf_addstr(&s->words, " of addresses in ");
    text_add_number(&s->words, v->areas, "area");
    buf_addstr(&s->words, " with ");
    add_known(&s->words, &v->pages_bytes);
    buf_addstr(&s->words, " of pages; ");
    add_size(&s->words, v->unpurged_bytes);
    buf_addstr(&s->words, " freed and not yet purged; ");
    if (v->holes_bytes.known) {
        text_add_number(&s->words, v->holes, "hole");
        buf_addstr(&s->words, " between them take ");
        add_known(&s->words, &v->holes_bytes);
    } else {
        buf_addstr(&s->words, "holes are not known: the kernel hides addresses (kernel.kptr_restrict is 0)");
    }
    end_line(s, "  vmalloc");
}

static void write_check(struct screen *s)
{
    const struct frag_whole *w = &s->r->frag->whole;
    const uint64_t rest = (uint64_t)(w->rest_bytes < 0 ? -w->rest_bytes : w->rest_bytes);
    if (!w->slab_bytes.known || !w->meminfo_bytes.known)
        return;
    buf_addstr(&s->words, "slabs ");
    add_known(&s->words, &w->slab_bytes);
    buf_addstr(&s->words, " + kmallocs of whole pages ");
    add_known(&s->words, &w->large_bytes);
    buf_addstr(&s->words, w->large_bytes.known ? " (of the capture)" : " (not known without a capture)");
    buf_addstr(&s->words, " + rest ");
    if (w->rest_bytes < 0)
        buf_addch(&s->words, '-');
    add_size(&s->words, rest);
    add_share_of(&s->words, rest, w->meminfo_bytes.high);
    buf_addstr(&s->words, " = Slab: of meminfo ");
    add_known(&s->words, &w->meminfo_bytes);
    if (w->rest_max_bytes) {
        buf_addstr(&s->words, ", which may be off by ");
        add_size(&s->words, w->rest_max_bytes);
    }
    end_line(s, "  check");
}

/* ---- lists ---- */

static void write_table(struct screen *s, struct table *t, const char *noun)
{
    const uint32_t n = table_rows(t), top = s->r->top;
    if (top && n > top)
        table_cut(t, top);
    if (n) {
        sink_char(s->out, '\n');
        table_view_text(s->out, t, s->style);
    }
    if (top && n > top)
        sink_printf(s->out, "and %" PRIu32 " more %s (--top 0 shows all)\n", n - top, noun);
    table_free(t);
}

static void write_sites(struct screen *s)
{
    if (!s->r->sites)
        return;
    struct table *t = frag_sites_table();
    table_copy_rows(t, s->r->sites);
    t->hidden = s->r->sites->hidden;
    write_table(s, frag_buckets_table(t), "buckets");
    write_table(s, t, "sites");
}

static void write_fallback_rows(struct screen *s)
{
    if (!s->r->fallbacks)
        return;
    struct table *t = frag_fallbacks_table();
    table_copy_rows(t, s->r->fallbacks);
    write_table(s, t, "requests that took blocks");
}

static void add_index(struct columns *g, const struct frag_zone *z, unsigned order, int what)
{
    struct buf cell = BUF_INIT;
    char text[UNITS_TEXT_BYTES];
    if (order >= z->of->orders)
        buf_addch(&cell, '-');
    else if (what == 0)
        buf_addstr(&cell, units_format_count(text, (double)z->of->blocks[order]));
    else if (what == 1)
        buf_printf(&cell, "%" PRIu64 ".%03" PRIu64, z->unusable[order] / 1000, z->unusable[order] % 1000);
    else if (z->extfrag[order] == -1000)
        buf_addstr(&cell, "fits");
    else
        buf_printf(&cell, "%s%d.%03d", z->extfrag[order] < 0 ? "-" : "", abs((int)(z->extfrag[order] / 1000)),
                   abs((int)(z->extfrag[order] % 1000)));
    columns_cell(g, &cell);
}

static void add_zone_rows(struct columns *g, const struct screen *s, const struct frag_zone *z,
                          unsigned orders)
{
    static const char *const what[] = {"blocks", "unusable", "extfrag"};
    for (int i = 0; i < 3; i++) {
        struct buf name = BUF_INIT;
        columns_row(g);
        if (!i) {
            buf_printf(&name, "%u ", z->of->node);
            text_add_name(&name, s->style, z->of->name);
        }
        columns_cell(g, &name);
        buf_addstr(&name, what[i]);
        columns_cell(g, &name);
        for (unsigned order = 0; order < orders; order++)
            add_index(g, z, order, i);
    }
}

/* Three lines for each zone, with a column for each order. */
static void write_orders(struct screen *s)
{
    static const char *const numbers[MEMORY_ORDERS_MAX] = {"0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",
                                                           "8",  "9",  "10", "11", "12", "13", "14", "15",
                                                           "16", "17", "18", "19", "20", "21", "22", "23"};
    struct columns g = {.style = s->style};
    unsigned orders = 0;
    vec_each (const struct frag_zone, z, &s->r->frag->zones)
        orders = z->of->orders > orders ? z->of->orders : orders;
    if (!orders)
        return;
    columns_column(&g, (struct columns_column){.header = "ZONE", .left = true});
    columns_column(&g, (struct columns_column){.header = "ORDER", .left = true});
    for (unsigned i = 0; i < orders; i++) /* where there is little room, small orders go first */
        columns_column(&g, (struct columns_column){.header = numbers[i], .drop_rank = i ? orders - i : 0});
    vec_each (const struct frag_zone, z, &s->r->frag->zones)
        add_zone_rows(&g, s, z, orders);
    sink_char(s->out, '\n');
    columns_write(&g, s->out);
    columns_release(&g);
}

void frag_write(struct sink *out, const struct frag_report *r, const struct text_style *style)
{
    struct screen s = {.out = out, .r = r, .style = style};
    write_headline(&s);
    write_slab(&s);
    write_internal(&s);
    write_external(&s);
    write_fallbacks(&s);
    write_compaction(&s);
    write_vmalloc(&s);
    write_check(&s);
    write_table(&s, frag_caches_table(r->frag), "caches");
    write_sites(&s);
    write_orders(&s);
    write_table(&s, frag_types_table(r->frag), "types");
    write_fallback_rows(&s);
    write_table(&s, frag_callers_table(r->frag), "callers");
    buf_release(&s.words);
}
