/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/heaptrack.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "model/profile/frames.h"
#include "view/formats/heaptrack_parts.h"
#include "view/profile/profile_summary.h"
#include "view/text/text.h"

/* Of heaptrack, whose interpreter would have written this, and of the format. */
#define HEAPTRACK_VERSION 0x010400
#define FORMAT_VERSION    3
#define PAGE_BYTES        4096
/* Figures of a damaged recording may be anything; so large a one no machine has. */
#define LARGEST (double)(1ull << 48)

/* Estimates. */
struct amounts {
    double count, bytes;
};

/* One stack and power of two of the size: what its cells add up to. */
struct group {
    uint32_t trace;
    struct amounts allocated, live, peak, temporary;
};

struct writer {
    struct sink *out;
    const struct profile *p;
    const struct heaptrack_options *o;
    uint32_t *same; /* locations of the same code */
    struct map strings, ips, traces, group_index;
    uint32_t n_strings, n_ips, n_traces;
    uint32_t *stack_traces; /* 0: not yet */
    struct frames scratch;
    struct VEC(struct group) groups;
    struct heaptrack_pieces pieces;
    bool has_top;
};

/* ---- strings, addresses, stacks: written once, when they are first met; numbered from 1 ---- */

static uint32_t string_of(struct writer *w, const char *text)
{
    static const struct text_style utf8 = {.utf8 = true};
    struct buf clean = BUF_INIT;
    bool added;
    text_add_name(&clean, &utf8, text);
    uint32_t id = 0;
    if (clean.len)
        id = (uint32_t)map_put(&w->strings, clean.data, clean.len, w->n_strings + 1, &added);
    if (id && added) {
        sink_printf(w->out, "s %zx %s\n", clean.len, clean.data);
        w->n_strings++;
    }
    buf_release(&clean);
    return id;
}

/* An address with its n functions, innermost inlined first. */
static uint32_t ip_of(struct writer *w, const struct frame *f, size_t n)
{
    char scratch[FRAME_NAME_BYTES];
    struct buf line = BUF_INIT;
    bool added, code = f->location != PROFILE_NONE;
    uint64_t key = code ? w->same[f->location] : (uint64_t)1 << 32 | f->end;
    uint32_t id = (uint32_t)map_put_u64(&w->ips, key, w->n_ips + 1, &added);
    if (!added)
        return id;
    w->n_ips++;
    const struct profile_location *l = code ? &w->p->locations.at[f->location] : NULL;
    uint64_t bias = l && l->module != PROFILE_NONE ? w->p->modules.at[l->module].bias : 0;
    buf_printf(&line, "i %" PRIx64 " %x", l ? l->address + bias - (l->exact ? 0 : 1) : 0,
               string_of(w, frame_module(w->p, f)));
    for (size_t i = 0; i < n; i++) {
        uint32_t name = string_of(w, frame_function(w->p, &f[i], scratch));
        buf_printf(&line, " %x %x %x", name, string_of(w, frame_file(w->p, &f[i])), frame_line(w->p, &f[i]));
    }
    sink_printf(w->out, "%s\n", buf_str(&line));
    buf_release(&line);
    return id;
}

static uint32_t trace_of(struct writer *w, uint32_t ip, uint32_t parent)
{
    bool added;
    uint32_t id = (uint32_t)map_put_u64(&w->traces, (uint64_t)ip << 32 | parent, w->n_traces + 1, &added);
    if (added) {
        sink_printf(w->out, "t %x %x\n", ip, parent);
        w->n_traces++;
    }
    return id;
}

static uint32_t trace_of_stack(struct writer *w, uint32_t stack)
{
    struct frames *f = &w->scratch;
    uint32_t trace = w->stack_traces[stack];
    if (trace)
        return trace;
    frames_of(f, w->p, stack);
    for (size_t end = f->len, first; end; end = first) {
        first = end - 1;
        while (first && f->at[first].location != PROFILE_NONE && f->at[first].line != PROFILE_NONE &&
               f->at[first].line > w->p->locations.at[f->at[first].location].first_line)
            first--;
        trace = trace_of(w, ip_of(w, &f->at[first], end - first), trace);
    }
    return w->stack_traces[stack] = trace;
}

/* ---- what is to happen ---- */

static void add_sums(struct amounts *to, const struct profile_cell *c, const struct profile_sums *sums)
{
    struct estimate count = {0}, bytes = {0};
    profile_estimate_count(&count, c, sums);
    profile_estimate_bytes(&bytes, c, sums);
    to->count = fmin(to->count + count.value, LARGEST);
    to->bytes = fmin(to->bytes + bytes.value, LARGEST);
}

static bool peak_unknown(const struct profile *p, const struct profile_cell *c)
{
    return p->images.at[c->image].past && !p->images.at[c->image].peak_ns;
}

static void take_cell(struct writer *w, const struct profile_cell *c)
{
    uint32_t trace = trace_of_stack(w, c->stack);
    bool added;
    size_t at = map_put_u64(&w->group_index, (uint64_t)trace << 8 | c->size_class, w->groups.len, &added);
    if (added)
        vec_push(&w->groups)->trace = trace;
    struct group *g = &w->groups.at[at];
    struct profile_sums live = profile_live(c), temporary = profile_temporary(c);
    add_sums(&g->allocated, c, &c->allocated);
    add_sums(&g->live, c, &live);
    add_sums(&g->peak, c, peak_unknown(w->p, c) ? &live : &c->at_peak);
    add_sums(&g->temporary, c, &temporary);
}

/* How many objects and bytes, in whole numbers. */
struct amount {
    uint64_t n, bytes;
};

static struct amount whole(const struct amounts *of, double calls_each)
{
    return (struct amount){(uint64_t)llround(of->count / calls_each), (uint64_t)llround(of->bytes)};
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct amount both(struct amount a, struct amount b)
{
    return (struct amount){lesser(a.n, b.n), lesser(a.bytes, b.bytes)};
}

static struct amount less(struct amount a, struct amount b)
{
    return (struct amount){a.n - lesser(a.n, b.n), a.bytes - lesser(a.bytes, b.bytes)};
}

static void add_piece(struct writer *w, enum heaptrack_role role, uint32_t trace, uint64_t size, uint64_t n)
{
    double phase =
        fmod((double)w->pieces.len * 0.6180339887498949, 1); /* spreads evenly, whatever the number */
    if (n)
        *vec_push(&w->pieces) = (struct heaptrack_piece){.role = role,
                                                         .trace = trace,
                                                         .size = size,
                                                         .n = n,
                                                         .phase = phase,
                                                         .info = {HEAPTRACK_NO_INFO, HEAPTRACK_NO_INFO}};
}

/* Objects of two sizes next to each other, so that the bytes are right. Where there are bytes there is an object. */
static struct amount add_role(struct writer *w, enum heaptrack_role role, uint32_t trace, struct amount a)
{
    if (!a.n && a.bytes)
        a.n = 1;
    if (!a.n)
        return a;
    add_piece(w, role, trace, a.bytes / a.n, a.n - a.bytes % a.n);
    add_piece(w, role, trace, a.bytes / a.n + 1, a.bytes % a.n);
    return a;
}

/* As much as can be the same objects is taken to be so. */
static void split_group(struct writer *w, const struct group *g, double calls_each)
{
    struct amount live = whole(&g->live, calls_each), peak = whole(&g->peak, calls_each);
    struct amount kept = both(live, peak), rest = whole(&g->allocated, calls_each);
    struct amount temporary = whole(&g->temporary, calls_each);
    rest = less(rest, add_role(w, HEAPTRACK_KEPT, g->trace, kept));
    peak = less(peak, kept);
    if (temporary.n + peak.n > rest.n && peak.n && !w->has_top) {
        struct amount top = {1, peak.bytes / peak.n};
        add_role(w, HEAPTRACK_TOP, g->trace, top);
        w->has_top = true;
        temporary = less(temporary, top);
        rest = less(rest, top);
        peak = less(peak, top);
    }
    rest = less(rest, add_role(w, HEAPTRACK_PEAK, g->trace, peak));
    rest = less(rest, add_role(w, HEAPTRACK_LATE, g->trace, less(live, kept)));
    temporary = both(temporary, rest);
    if (temporary.n == rest.n && temporary.n)
        temporary.bytes = rest.bytes;
    else if (!temporary.n)
        temporary.bytes = 0;
    rest = less(rest, temporary);
    add_role(w, HEAPTRACK_TEMPORARY, g->trace, temporary);
    if (rest.n) /* bytes without an object are what rounding left */
        add_role(w, HEAPTRACK_BRIEF, g->trace, rest);
}

static bool counts(const struct writer *w, uint32_t cell)
{
    return !w->o->keep || w->o->keep(w->o->arg, w->p, cell);
}

/* Fills groups and pieces; returns how many calls an event stands for. */
static uint64_t make_pieces(struct writer *w)
{
    double calls = 0;
    for (uint32_t i = 0; i < w->p->cells.len; i++)
        if (counts(w, i))
            take_cell(w, &w->p->cells.at[i]);
    vec_each (const struct group, g, &w->groups)
        calls +=
            fmax(g->allocated.count, fmax(g->live.count, g->peak.count)); /* more only where it is damaged */
    double each = fmax(ceil(calls / HEAPTRACK_CALLS), 1);
    vec_each (const struct group, g, &w->groups)
        split_group(w, g, each);
    return (uint64_t)each;
}

static struct heaptrack_sums sums_of(const struct writer *w)
{
    struct heaptrack_sums s = {.scale = 1};
    double all = 0;
    vec_each (const struct heaptrack_piece, c, &w->pieces)
        s.bytes[c->role] += (double)c->size * (double)c->n;
    vec_each (const struct profile_cell, c, &w->p->cells) {
        bool unknown = peak_unknown(w->p, c);
        all += unknown ? profile_live(c).bytes : c->at_peak.bytes;
        s.allocated += c->allocated.bytes;
        s.past |= unknown;
    }
    if (w->o->keep && all > 0)
        s.scale = heaptrack_at_peak(&s) / all;
    return s;
}

/* ---- the file ---- */

/* What was run, and what the reader has no place for. */
static void write_command(const struct writer *w, const struct profile_summary *f, uint64_t calls_each)
{
    static const struct text_style utf8 = {.utf8 = true};
    char period[UNITS_TEXT_BYTES];
    struct buf line = BUF_INIT;
    const char *words = "";
    if (f->main_image != PROFILE_NONE) {
        const struct profile_image *i = &w->p->images.at[f->main_image];
        words = profile_text(w->p, *profile_text(w->p, i->args) ? i->args : i->comm);
    }
    text_add_name(&line, &utf8, *words ? words : "nothing");
    if (w->p->images.len > 1)
        buf_printf(&line, " and %zu more", w->p->images.len - 1);
    buf_addstr(&line, " [allium");
    if (f->period_high > 1)
        buf_printf(&line, ": estimates, sampled every %s", units_format_size(period, (double)f->period_high));
    if (calls_each > 1)
        buf_printf(&line, ": each call stands for %" PRIu64, calls_each);
    sink_printf(w->out, "X %s]\n", buf_str(&line));
    buf_release(&line);
}

static void release(struct writer *w)
{
    free(w->same);
    map_release(&w->strings);
    map_release(&w->ips);
    map_release(&w->traces);
    map_release(&w->group_index);
    free(w->stack_traces);
    vec_release(&w->scratch);
    vec_release(&w->groups);
    vec_release(&w->pieces);
}

static void begin(struct writer *w, struct sink *out, const struct profile *p,
                  const struct heaptrack_options *o)
{
    *w = (struct writer){.out = out, .p = p, .o = o, .same = frames_same_locations(p)};
    w->stack_traces = mem_array(p->stacks.len + 1, sizeof(*w->stack_traces));
    sink_printf(out, "v %x %x\n", HEAPTRACK_VERSION, FORMAT_VERSION);
    sink_printf(out, "I %x 0\n", PAGE_BYTES);
}

uint64_t heaptrack_write(struct sink *out, const struct profile *p, const struct heaptrack_options *o)
{
    struct profile_summary f = profile_summary_of(p);
    struct heaptrack_steps steps = {.peak = 0};
    struct writer w;
    begin(&w, out, p, o);
    uint64_t each = make_pieces(&w);
    write_command(&w, &f, each);
    struct heaptrack_sums sums = sums_of(&w);
    heaptrack_steps_make(&steps, p, &sums);
    heaptrack_play(out, &w.pieces, &steps, f.began_ns);
    vec_release(&steps.at);
    release(&w);
    return each;
}

/* ---- lives as they happened ---- */

struct life_kind {
    uint64_t size_bytes;
    uint64_t trace;
};

struct lives {
    struct writer w;
    struct heaptrack_steps steps; /* what else the file has of the time */
    size_t next_step;
    uint64_t began_ns, shown_ms;
    struct map infos;       /* by kind */
    uint32_t n_infos, last; /* `last`: of the event before, if that was an allocation; else NO_INFO */
    struct life_kind first; /* of info 0, which is that of the first allocation alone */
};

/* Writes the time, and what was measured until then. It never goes back. */
static void pass_time(struct lives *l, uint64_t time_ns)
{
    for (; l->next_step < l->steps.at.len && l->steps.at.at[l->next_step].time_ns <= time_ns; l->next_step++)
        if (l->steps.at.at[l->next_step].rss_bytes)
            heaptrack_put(l->w.out, 'R', l->steps.at.at[l->next_step].rss_bytes / PAGE_BYTES);
    const uint64_t ms = time_ns > l->began_ns ? (time_ns - l->began_ns) / 1000000 : 0;
    if (ms > l->shown_ms)
        heaptrack_put(l->w.out, 'c', l->shown_ms = ms);
}

/* After a free, the reader takes 0 for its last allocation. So a free has info 0 only right after its allocation, or if
 * its kind has no other info: a later allocation of the kind gets another info. */
static uint32_t info_of_free(const struct lives *l, const struct life_kind *kind)
{
    const bool is_first = kind->size_bytes == l->first.size_bytes && kind->trace == l->first.trace;
    const size_t known = map_get(&l->infos, kind, sizeof(*kind));
    return (is_first && l->last == 0) || known == MAP_NONE ? 0 : (uint32_t)known;
}

static uint32_t info_of_allocation(struct lives *l, const struct life_kind *kind)
{
    bool added = true;
    uint32_t info = 0;
    if (l->n_infos)
        info = (uint32_t)map_put(&l->infos, kind, sizeof(*kind), l->n_infos, &added);
    else
        l->first = *kind;
    if (added)
        sink_printf(l->w.out, "a %llx %x\n", (unsigned long long)kind->size_bytes, (uint32_t)kind->trace);
    l->n_infos += added;
    return info;
}

static void hear(void *arg, const struct object_life *life)
{
    struct lives *l = arg;
    const struct profile *p = l->w.p;
    if (life->cell >= p->cells.len || !counts(&l->w, life->cell))
        return;
    const struct life_kind kind = {life->size_bytes, trace_of_stack(&l->w, p->cells.at[life->cell].stack)};
    pass_time(l, life->time_ns);
    const uint32_t info = life->is_end ? info_of_free(l, &kind) : info_of_allocation(l, &kind);
    heaptrack_put(l->w.out, life->is_end ? '-' : '+', info);
    l->last = life->is_end ? HEAPTRACK_NO_INFO : info;
}

int heaptrack_write_lives(struct sink *out, const struct profile *p, const struct heaptrack_options *o,
                          heaptrack_play_fn *play, void *arg, struct error *e)
{
    const struct profile_summary f = profile_summary_of(p);
    struct lives l = {.began_ns = f.began_ns, .last = HEAPTRACK_NO_INFO};
    begin(&l.w, out, p, o);
    write_command(&l.w, &f, 1);
    const struct heaptrack_sums sums = sums_of(&l.w);
    heaptrack_steps_make(&l.steps, p, &sums);
    heaptrack_put(out, 'c', 0);
    const int bad = play(arg, &(struct object_listener){hear, &l}, e);
    pass_time(&l, f.taken_ns);
    map_release(&l.infos);
    vec_release(&l.steps.at);
    release(&l.w);
    return bad;
}
