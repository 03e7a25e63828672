/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/units.h"
#include "view/profile/report_parts.h"
#include "view/profile/runtime_hint.h"

#define LARGEST 3
#define INDENT  13

struct summary {
    struct sink *out;
    const struct text_style *style;
    const struct profile *p;
    struct profile_summary facts;
    struct rollup *owners; /* rows by owner, largest at the peak first */
    const char *unseen;    /* as for summary_write() */
};

static void write_line(const struct summary *s, const char *label, struct buf *b)
{
    struct buf line = BUF_INIT, whole = BUF_INIT;
    buf_printf(&whole, "  %-10s %s", label, buf_str(b));
    text_add_short(&line, s->style, buf_str(&whole), s->style->columns ? s->style->columns : SIZE_MAX);
    sink_printf(s->out, "%s\n", buf_str(&line));
    buf_release(&line);
    buf_release(&whole);
    buf_reset(b);
}

/* Appends the word, quoted for a shell. */
static void add_quoted(struct buf *b, const struct text_style *style, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-=@:,%";
    if (*word && *word != '-' && !word[strspn(word, plain)]) {
        buf_addstr(b, word);
        return;
    }
    struct buf quoted = BUF_INIT;
    for (; *word; word++)
        if (*word == '\'')
            buf_addstr(&quoted, "'\\''");
        else
            buf_addch(&quoted, *word);
    buf_addch(b, '\'');
    text_add_name(b, style, buf_str(&quoted));
    buf_addch(b, '\'');
    buf_release(&quoted);
}

static void add_owner(struct buf *b, const struct summary *s, const struct rollup_row *row)
{
    const char *place = frame_basename(*row->file ? row->file : row->module);
    text_add_name(b, s->style, row->name);
    if (!*place)
        return;
    buf_addstr(b, " (");
    text_add_name(b, s->style, place);
    buf_addch(b, ')');
}

static void write_title(const struct summary *s)
{
    const struct profile_summary *f = &s->facts;
    char took[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT, line = BUF_INIT;
    buf_addstr(&b, "allium: ");
    report_add_title(&b, s->p, f, s->style);
    if (f->taken_ns > f->began_ns)
        buf_printf(&b, ", %s", units_format_duration(took, (double)(f->taken_ns - f->began_ns)));
    if (f->main_image != PROFILE_NONE) {
        buf_addstr(&b, ", ");
        report_add_period(&b, f, s->style);
    }
    text_add_short(&line, s->style, buf_str(&b), s->style->columns ? s->style->columns : SIZE_MAX);
    sink_printf(s->out, "%s%s%s\n", text_begin(s->style, TEXT_STRONG), buf_str(&line),
                text_end(s->style, TEXT_STRONG));
    buf_release(&b);
    buf_release(&line);
}

static void write_peak(const struct summary *s)
{
    const struct rollup *r = s->owners;
    double total = r->total.of[ROLLUP_PEAK].bytes.value;
    struct buf b = BUF_INIT;
    report_add_peak(&b, r, s->style);
    write_line(s, "peak", &b);
    for (size_t i = 0; i < r->rows.len && i < LARGEST; i++) {
        const struct rollup_row *row = &r->rows.at[i];
        struct buf share = BUF_INIT;
        if (!rollup_known(&r->total, ROLLUP_PEAK) || !(row->self.of[ROLLUP_PEAK].bytes.value > 0))
            break;
        text_add_share(&share, row->self.of[ROLLUP_PEAK].bytes.value, total);
        buf_printf(&b, "%7s  ", buf_str(&share));
        add_owner(&b, s, row);
        write_line(s, i ? "" : "  held by", &b);
        buf_release(&share);
    }
    buf_release(&b);
}

/* Returns whether the row is code of a module in which no function has this address: "ls+0x180b0". */
static bool is_nameless(const struct rollup_row *row)
{
    const char *module = frame_basename(row->module);
    size_t len = strlen(module);
    return len && !strncmp(row->name, module, len) && !strncmp(row->name + len, "+0x", 3);
}

/* If one of the largest owners has no name: a line on how to get it. */
static void write_nameless(const struct summary *s)
{
    const struct rollup *r = s->owners;
    for (size_t i = 0; i < r->rows.len && i < LARGEST; i++) {
        struct buf b = BUF_INIT;
        if (!is_nameless(&r->rows.at[i]))
            continue;
        text_add_name(&b, s->style, frame_basename(r->rows.at[i].module));
        buf_addstr(&b, " has none there: install its debug symbols, build it with -g, or set DEBUGINFOD_URLS "
                       "(allium doctor)");
        text_paragraph(s->out, s->style, "  symbols", INDENT, buf_str(&b));
        buf_release(&b);
        return; /* once is enough to know it */
    }
}

static void write_held(const struct summary *s)
{
    const struct rollup *r = s->owners;
    const struct rollup_row *most = NULL;
    const struct estimate *live = &r->total.of[ROLLUP_LIVE].bytes;
    struct buf b = BUF_INIT;
    vec_each (const struct rollup_row, row, &r->rows)
        if (row->self.of[ROLLUP_LIVE].bytes.samples &&
            (!most || row->self.of[ROLLUP_LIVE].bytes.value > most->self.of[ROLLUP_LIVE].bytes.value))
            most = row;
    text_add_figure(&b, s->style, live, TEXT_BYTES);
    buf_addstr(&b, s->facts.running == s->p->images.len ? " held" : " still held");
    if (most) {
        buf_addstr(&b, ", ");
        text_add_share(&b, most->self.of[ROLLUP_LIVE].bytes.value, live->value);
        buf_addstr(&b, " by ");
        add_owner(&b, s, most);
    }
    write_line(s, report_live_word(&s->facts), &b);
    buf_release(&b);
}

static void write_churned(const struct summary *s)
{
    const struct rollup_value *of = s->owners->total.of;
    struct buf b = BUF_INIT;
    text_add_figure(&b, s->style, &of[ROLLUP_ALLOCATED].bytes, TEXT_BYTES);
    buf_addstr(&b, " in ");
    text_add_value(&b, &of[ROLLUP_ALLOCATED].count, TEXT_COUNT);
    buf_addstr(&b, " allocations");
    if (rollup_known(&s->owners->total, ROLLUP_TEMPORARY) && of[ROLLUP_ALLOCATED].bytes.value > 0) {
        buf_addstr(&b, ", ");
        text_add_share(&b, of[ROLLUP_TEMPORARY].bytes.value, of[ROLLUP_ALLOCATED].bytes.value);
        buf_addstr(&b, " of it temporary");
    }
    write_line(s, "churned", &b);
    buf_release(&b);
}

static void write_processes(const struct summary *s)
{
    if (s->p->images.len < 2)
        return;
    bool peak = rollup_known(&s->owners->total, ROLLUP_PEAK);
    const struct rollup_options by_process = {.group = ROLLUP_BY_PROCESS,
                                              .sort = peak ? ROLLUP_SORT_PEAK : ROLLUP_SORT_LIVE,
                                              .without = ~(1u << (peak ? ROLLUP_PEAK : ROLLUP_LIVE))};
    struct rollup *r = rollup_new(s->p, &by_process);
    struct buf b = BUF_INIT;
    size_t shown = r->rows.len < LARGEST ? r->rows.len : LARGEST;
    for (size_t i = 0; i < shown; i++) {
        buf_addstr(&b, i ? ", " : "");
        text_add_name(&b, s->style, r->rows.at[i].name);
        buf_addch(&b, ' ');
        text_add_value(&b, &r->rows.at[i].self.of[peak ? ROLLUP_PEAK : ROLLUP_LIVE].bytes, TEXT_BYTES);
    }
    size_t more = s->p->images.len - shown + s->p->images_dropped;
    if (more)
        buf_printf(&b, shown ? ", %zu more" : "%zu, none with a sample", more);
    write_line(s, "processes", &b);
    buf_release(&b);
    rollup_free(r);
}

/* Writes the unobserved programs that started most often, one a line. */
static void write_unobserved(const struct summary *s)
{
    struct buf b = BUF_INIT;
    uint64_t more = 0;
    const char *label = "unobserved";
    for (size_t i = 0; i < s->p->unobserved.len; i++) {
        const struct profile_unobserved *u = &s->p->unobserved.at[i];
        if (i >= LARGEST) {
            more += u->processes;
            continue;
        }
        report_add_unobserved(&b, s->p, u, s->style);
        write_line(s, label, &b);
        label = "";
    }
    if (more) {
        text_add_number(&b, more, "start");
        buf_addstr(&b, " of other programs; the report shows their names and the reasons");
        write_line(s, label, &b);
    }
    buf_release(&b);
}

/* Says so if the figures explain less than half of a process's memory, and what to do if its language is known. */
static void write_unseen(const struct summary *s)
{
    uint32_t image = runtime_hint_unseen_image(s->p);
    struct buf b = BUF_INIT;
    if (image != PROFILE_NONE)
        report_add_unseen(&b, s->p, image, s->style);
    else if (s->unseen)
        buf_addstr(&b, s->unseen);
    if (b.len)
        text_paragraph(s->out, s->style, "  unseen", 13, buf_str(&b));
    buf_release(&b);
}

/* Writes one line for each loss. The footer of the report has advice, too. */
static void write_lost(struct summary *s)
{
    struct buf notes = BUF_INIT, b = BUF_INIT;
    const char *label = "lost";
    profile_summary_note_losses(&notes, s->p, &s->facts, s->style);
    for (const char *line = buf_str(&notes), *end; (end = strchr(line, '\n')); line = end + 1) {
        buf_add(&b, line, (size_t)(end - line));
        write_line(s, label, &b);
        label = "";
    }
    buf_release(&notes);
    buf_release(&b);
}

void summary_write(struct sink *out, const struct profile *p, const struct text_style *style,
                   const char *file, const char *unseen)
{
    const struct rollup_options by_owner = {.group = ROLLUP_BY_OWNER, .sort = ROLLUP_SORT_PEAK};
    struct summary s = {.out = out, .style = style, .p = p, .facts = profile_summary_of(p), .unseen = unseen};
    struct buf b = BUF_INIT;
    s.owners = rollup_new(p, &by_owner);
    write_title(&s);
    if (s.facts.main_image == PROFILE_NONE) {
        report_add_nothing(&b, s.owners, &s.facts, style);
        text_paragraph(out, style, "", 2, buf_str(&b));
        write_unobserved(&s);
        buf_release(&b);
        rollup_free(s.owners);
        return;
    }
    write_peak(&s);
    write_held(&s);
    write_churned(&s);
    write_nameless(&s);
    write_processes(&s);
    write_unobserved(&s);
    write_unseen(&s);
    write_lost(&s);
    if (file) { /* never shortened: users copy this line */
        add_quoted(&b, style, file);
        sink_printf(out, "  %-10s allium report %s\n", "next", buf_str(&b));
    }
    buf_release(&b);
    rollup_free(s.owners);
}
