/* SPDX-License-Identifier: BSD-2-Clause */
/* A machine's memory on a terminal: what fits its height, the urgent things first. */
#include "view/table/overview_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "model/overview/overview_tables.h"
#include "view/table/table_view.h"

#define INDENT       13
#define NOTE_INDENT  10
#define LEAST_NOTES  2 /* lines */
#define LEAST_ROWS   3 /* processes */
#define TABLE_LINES  3 /* beside its rows: an empty line, the headings, and the columns that have no room */
#define FOOTER_LINES 1

struct brief {
    struct sink out; /* to `lines`: the number of lines decides how long the lists may be */
    struct buf lines;
    const struct overview *m;
    const struct text_style *style;
};

static unsigned count_lines(const struct buf *b)
{
    unsigned lines = 0;
    for (size_t i = 0; i < b->len; i++)
        lines += b->data[i] == '\n';
    return lines;
}

static void add_size(struct buf *b, enum overview_memory kind, const struct overview *m, const char *what)
{
    char text[UNITS_TEXT_BYTES];
    if (overview_memory_has(m, kind))
        buf_printf(b, "%s%s %s", b->len ? ", " : "",
                   units_format_size(text, (double)overview_memory_of(m, kind)), what);
}

static void end_line(struct brief *s, const char *label, struct buf *words)
{
    if (words->len)
        text_paragraph(&s->out, s->style, label, INDENT, buf_str(words));
    buf_release(words);
    *words = (struct buf)BUF_INIT;
}

static void write_head(struct brief *s)
{
    char text[UNITS_TEXT_BYTES];
    const struct overview *m = s->m;
    struct buf all = BUF_INIT, line = BUF_INIT;
    text_add_name(&all, s->style, m->host);
    buf_addstr(&all, ", Linux ");
    text_add_name(&all, s->style, m->release);
    buf_printf(&all, ", up %s, %" PRIu32 " processes, ", units_format_duration(text, (double)m->boot_ns),
               m->n_processes);
    text_add_instant(&all, m->taken_ns);
    text_add_short(&line, s->style, buf_str(&all), s->style->columns);
    sink_printf(&s->out, "%s%s%s\n", text_begin(s->style, TEXT_STRONG), buf_str(&line),
                text_end(s->style, TEXT_STRONG));
    buf_release(&all);
    buf_release(&line);
}

/* Cuts a note to the room beside the dots; the command in brackets that tells more stays. */
static void cut(struct buf *words, size_t room, const char *dots)
{
    const char *command = strstr(buf_str(words), " (allium "), *end = command ? strchr(command, ')') : NULL;
    struct buf kept = BUF_INIT;
    if (end)
        buf_add(&kept, command, (size_t)(end + 1 - command));
    const size_t left = room > kept.len ? room - kept.len : 0,
                 before = command ? (size_t)(command - words->data) : words->len;
    const size_t fits = text_bytes(buf_str(words), left);
    words->len = fits < before ? fits : before;
    words->data[words->len] = '\0';
    buf_printf(words, "%s%s", dots, buf_str(&kept));
    buf_release(&kept);
}

/* A note, in as many lines as it needs or in one, which is cut at its end. */
static void add_note(struct buf *lines, const struct brief *s, const struct overview_note *n,
                     bool in_one_line)
{
    const enum text_look look = n->urgent ? TEXT_ALARM : TEXT_PLAIN;
    const char *label = n->urgent ? "  URGENT" : "  note", *dots = text_dots(s->style);
    const size_t room = s->style->columns - NOTE_INDENT - text_width(dots);
    struct buf words = BUF_INIT;
    struct sink out = sink_to_buf(lines);
    text_add_name(&words, s->style, n->text);
    if (in_one_line && s->style->columns && text_width(buf_str(&words)) > room)
        cut(&words, room, dots);
    sink_text(&out, text_begin(s->style, look));
    text_paragraph(&out, s->style, label, NOTE_INDENT, buf_str(&words));
    sink_text(&out, text_end(s->style, look));
    buf_release(&words);
}

/*
 * Urgent notes first, in at most `most` lines. If they need more, the last ones get one line each, which says what it
 * is about; only if that is not enough, some are left out.
 */
static void write_notes(struct brief *s, unsigned most)
{
    struct VEC(struct buf) notes = {0};
    struct VEC(const struct overview_note *) order = {0};
    unsigned used = 0;
    for (int urgent = 1; urgent >= 0; urgent--)
        vec_each (const struct overview_note, n, &s->m->notes)
            if (n->urgent == urgent)
                *vec_push(&order) = n;
    for (size_t i = 0; i < order.len; i++) {
        *vec_push(&notes) = (struct buf)BUF_INIT;
        add_note(&notes.at[i], s, order.at[i], false);
        used += count_lines(&notes.at[i]);
    }
    for (size_t i = order.len; i && used > most; i--) {
        used -= count_lines(&notes.at[i - 1]) - 1;
        buf_reset(&notes.at[i - 1]);
        add_note(&notes.at[i - 1], s, order.at[i - 1], true);
    }
    size_t shown = used > most ? most - 1 : order.len;
    for (size_t i = 0; i < order.len; i++) {
        if (i < shown)
            sink_text(&s->out, buf_str(&notes.at[i]));
        buf_release(&notes.at[i]);
    }
    if (shown < order.len)
        sink_printf(&s->out, "  %s %zu more with --all\n", text_dots(s->style), order.len - shown);
    if (!order.len)
        sink_text(&s->out, "  nothing out of the ordinary\n");
    vec_release(&notes);
    vec_release(&order);
}

static void write_memory(struct brief *s)
{
    const struct overview *m = s->m;
    struct buf b = BUF_INIT;
    add_size(&b, OVERVIEW_TOTAL, m, "in all");
    add_size(&b, OVERVIEW_AVAILABLE, m, "available");
    if (overview_memory_of(m, OVERVIEW_TOTAL)) {
        buf_addstr(&b, " (");
        text_add_share(&b, (double)overview_memory_of(m, OVERVIEW_AVAILABLE),
                       (double)overview_memory_of(m, OVERVIEW_TOTAL));
        buf_addch(&b, ')');
    }
    add_size(&b, OVERVIEW_FREE, m, "free");
    end_line(s, "  memory", &b);
    add_size(&b, OVERVIEW_ANON, m, "anonymous");
    add_size(&b, OVERVIEW_CACHED, m, "page cache with shmem");
    add_size(&b, OVERVIEW_SHMEM, m, "shmem");
    add_size(&b, OVERVIEW_SLAB_UNRECLAIMABLE, m, "unreclaimable slab");
    end_line(s, "", &b);
    if (!m->swaps.len) {
        buf_addstr(&b, "none");
    } else {
        add_size(&b, OVERVIEW_SWAP_TOTAL, m, "in all");
        add_size(&b, OVERVIEW_SWAP_FREE, m, "free");
    }
    end_line(s, "  swap", &b);
}

static void add_rate(struct buf *b, const struct overview *m, enum overview_count count)
{
    char text[UNITS_TEXT_BYTES];
    const struct overview_count_name *name = &overview_count_names[count];
    if (!overview_count_has(&m->counts, count) || m->rate[count] < 0)
        return;
    buf_printf(b, "%s%s %s", b->len ? ", " : "",
               name->bytes ? units_format_size(text, m->rate[count])
                           : units_format_count(text, m->rate[count]),
               name->label);
}

static void write_rates(struct brief *s)
{
    static const enum overview_count shown[] = {OVERVIEW_MAJOR_FAULTS, OVERVIEW_SWAPPED_IN,
                                                OVERVIEW_SWAPPED_OUT, OVERVIEW_DIRECT_STALLS,
                                                OVERVIEW_KSWAPD_RUNS};
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
        add_rate(&b, s->m, shown[i]);
    if (s->m->rate[OVERVIEW_STOLEN_CGROUP] > 0) /* the kernel leaves it out of the direct reclaims */
        add_rate(&b, s->m, OVERVIEW_STOLEN_CGROUP);
    end_line(s, "  per second", &b);
}

static void write_pressure(struct brief *s)
{
    static const char *const labels[] = {"memory", "I/O", "CPU"};
    struct buf b = BUF_INIT;
    for (int i = 0; i < OVERVIEW_RESOURCES; i++) {
        const struct overview_pressure *p = &s->m->pressure[i];
        if (p->some.known)
            buf_printf(&b, "%s%s %.1f %%", b.len ? ", " : "", labels[i], p->some.last);
    }
    buf_addstr(&b, b.len ? " of the time some task waited" : "not known");
    end_line(s, "  pressure", &b);
}

static void write_list(struct brief *s, struct table *t, uint32_t rows)
{
    table_cut(t, rows);
    if (rows && table_rows(t)) {
        sink_char(&s->out, '\n');
        table_view_text(&s->out, t, s->style);
    }
    table_free(t);
}

/* Two thirds of the rest are the processes', one third the cgroups', if there is room for both. */
static void write_lists(struct brief *s, unsigned rows)
{
    struct table *processes = overview_processes_table(s->m), *cgroups = overview_cgroups_table(s->m);
    uint32_t used = count_lines(&s->lines) + FOOTER_LINES, left = rows > used ? rows - used : 0;
    uint32_t all = table_rows(cgroups), of_cgroups = left / 3 > TABLE_LINES ? left / 3 - TABLE_LINES : 0;
    of_cgroups = of_cgroups < all ? of_cgroups : all;
    left -= of_cgroups ? of_cgroups + TABLE_LINES : 0;
    write_list(s, processes, left > TABLE_LINES ? left - TABLE_LINES : 0);
    write_list(s, cgroups, of_cgroups);
}

/* Memory, swap, rates, pressure. */
static struct buf figures(const struct overview *m, const struct text_style *style)
{
    struct brief s = {.lines = BUF_INIT, .m = m, .style = style};
    s.out = sink_to_buf(&s.lines);
    write_memory(&s);
    write_rates(&s);
    write_pressure(&s);
    return s.lines;
}

void overview_brief_write(struct sink *out, const struct overview *m, unsigned rows,
                          const struct text_style *style)
{
    struct brief s = {.lines = BUF_INIT, .m = m, .style = style};
    struct buf below = figures(m, style);
    s.out = sink_to_buf(&s.lines);
    write_head(&s);
    unsigned others = count_lines(&s.lines) + count_lines(&below) + TABLE_LINES + LEAST_ROWS + FOOTER_LINES;
    write_notes(&s, rows > others + LEAST_NOTES ? rows - others : LEAST_NOTES);
    sink_text(&s.out, buf_str(&below));
    write_lists(&s, rows);
    sink_printf(&s.out, "%s--all has zones, slab caches, all rates, OOM kills%s",
                text_begin(style, TEXT_FAINT), text_end(style, TEXT_FAINT));
    sink_text(out, buf_str(&s.lines));
    buf_release(&s.lines);
    buf_release(&below);
}
