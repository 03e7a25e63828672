/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/call_details_read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "collect/accounts/site_accounts.h"
#include "collect/ledger/ledger_profile.h"
#include "collect/ledger/profile_names.h"
#include "model/profile/frames.h"

#define HOOKS "allium/malloc_hooks.h"

/* The data of one reading. */
struct work {
    struct tags_details *d;
    struct ledger_copy *c;
    const struct account_rows *rows;
    struct VEC(uint32_t) row; /* by account or site: its row + 1; 0: it has none */
    bool sites;
    const struct query *where;
    const struct alloc_texts *texts;
};

static const struct account_row *row_of(const struct work *w, uint32_t account)
{
    if (account >= w->row.len || !w->row.at[account])
        return NULL;
    return &w->rows->at[w->row.at[account] - 1];
}

/* Returns the row of an account or site if it matches the query, else NULL. A number without a row is counted as
 * damaged. */
static const struct account_row *meant(struct work *w, uint32_t account)
{
    const struct account_row *row = row_of(w, account);
    if (account && !row)
        w->d->damaged++;
    return row && (!w->where || account_row_fits(row, w->where, w->texts)) ? row : NULL;
}

/* Fills w->row. `number` has, for each row, the number of its account or site in the ledger. */
static void number_rows(struct work *w, const uint32_t *number)
{
    for (size_t i = 0; i < w->rows->len; i++) {
        while (w->row.len <= number[i])
            *vec_push(&w->row) = 0;
        w->row.at[number[i]] = (uint32_t)i + 1;
    }
}

/* ---- stacks ---- */

/* Returns whether the frame belongs to Allium: to the library, or to the inline code that replaces the called function.
 * Such frames are the innermost ones of a stack. */
static bool is_ours(const struct profile *p, const struct frame *f)
{
    const struct profile_location *l = f->location == PROFILE_NONE ? NULL : &p->locations.at[f->location];
    const char *module =
        !l || l->module == PROFILE_NONE ? "" : profile_text(p, p->modules.at[l->module].path);
    const char *file = f->line == PROFILE_NONE ? "" : profile_text(p, p->lines.at[f->line].file);
    return strstr(module, "/liballium.so") || strstr(file, HOOKS);
}

static void add_frame(struct buf *b, const struct profile *p, const struct frame *f)
{
    static const char *const ends[] = {[PROFILE_STACK_WHOLE] = "[no frames]",
                                       [PROFILE_STACK_CUT] = "[cut]",
                                       [PROFILE_STACK_NO_CODE] = "[code without a file]",
                                       [PROFILE_STACK_NO_RULE] = "[no unwind rules]",
                                       [PROFILE_STACK_BROKEN] = "[broken]"};
    const struct profile_line *line = f->line == PROFILE_NONE ? NULL : &p->lines.at[f->line];
    if (f->location == PROFILE_NONE) {
        buf_addstr(b, ends[f->end]);
    } else if (!line) {
        buf_printf(b, "0x%" PRIx64, p->locations.at[f->location].address);
    } else {
        const char *file = profile_text(p, line->file);
        buf_addstr(b, profile_text(p, line->function));
        if (*file && line->line)
            buf_printf(b, " (%s:%u)", file, line->line);
    }
    buf_addch(b, '\n');
}

/* Adds the function of the place if it is not the innermost frame. If a function ends with the call (a tail call), its
 * frame was gone by the time that the stack was walked. */
static void add_place(struct buf *b, const struct work *w, const struct account_key *place,
                      const struct profile *p, const struct frame *innermost)
{
    const char *function = place->function ? alloc_texts_get(w->texts, place->function) : "";
    if (!*function || (innermost->line != PROFILE_NONE &&
                       !strcmp(function, profile_text(p, p->lines.at[innermost->line].function))))
        return;
    buf_addstr(b, function);
    if (place->file && place->line)
        buf_printf(b, " (%s:%u)", alloc_texts_get(w->texts, place->file), place->line);
    buf_addch(b, '\n');
}

static char *lines_of(const struct work *w, const struct account_key *place, const struct profile *p,
                      uint32_t stack)
{
    struct frames frames = {0};
    struct buf b = BUF_INIT;
    size_t i = 0;
    frames_of(&frames, p, stack);
    while (i + 1 < frames.len && is_ours(p, &frames.at[i]))
        i++;
    if (!w->sites)
        add_place(&b, w, place, p, &frames.at[i]);
    for (; i < frames.len; i++)
        add_frame(&b, p, &frames.at[i]);
    vec_release(&frames);
    return buf_detach(&b);
}

static void take_calls(struct work *w, const struct profile *p, const uint32_t *number)
{
    for (uint64_t i = 0; i < w->c->count[LEDGER_TAG_STACKS]; i++) {
        const struct ledger_tag_stack *s =
            ledger_copy_at(w->c, LEDGER_TAG_STACKS, struct ledger_tag_stack, i);
        bool mine = s->calls && !(s->account & LEDGER_STACK_OF_SITE) == !w->sites;
        const struct account_row *row = mine ? meant(w, s->account & ~LEDGER_STACK_OF_SITE) : NULL;
        if (!row)
            continue;
        if (s->stack >= w->c->count[LEDGER_STACKS] || number[s->stack] == PROFILE_NONE) {
            w->d->damaged++;
            continue;
        }
        w->d->cut += p->stacks.at[number[s->stack]].end == PROFILE_STACK_CUT;
        *vec_push(&w->d->calls) = (struct tags_call){.place = row->key,
                                                     .calls = s->calls,
                                                     .bytes = s->bytes,
                                                     .stack = lines_of(w, &row->key, p, number[s->stack])};
    }
}

static int compare_calls(const void *a, const void *b)
{
    const struct tags_call *x = a, *y = b;
    int order = memcmp(&x->place, &y->place, sizeof(x->place));
    return order ? order : strcmp(x->stack, y->stack);
}

/* Adds up the calls of copies of a place, and of stacks that differ but have the same text. */
static void merge_calls(struct tags_details *d)
{
    size_t kept = 0;
    if (d->calls.len)
        qsort(d->calls.at, d->calls.len, sizeof(*d->calls.at), compare_calls);
    vec_each (struct tags_call, call, &d->calls) {
        struct tags_call *into = kept ? &d->calls.at[kept - 1] : NULL;
        if (!into || compare_calls(into, call)) {
            d->calls.at[kept++] = *call;
            continue;
        }
        into->calls += call->calls;
        into->bytes += call->bytes;
        free(call->stack);
    }
    d->calls.len = kept;
}

/* ---- latency ---- */

static struct tags_latency *latency_of(struct tags_details *d, const struct account_key *place)
{
    vec_each (struct tags_latency, l, &d->latencies)
        if (!memcmp(&l->place, place, sizeof(*place)))
            return l;
    struct tags_latency *l = vec_push(&d->latencies);
    l->place = *place;
    return l;
}

static void take_latencies(struct work *w)
{
    for (uint64_t i = 0; !w->sites && i < w->c->count[LEDGER_LATENCIES]; i++) {
        const struct ledger_latency *from = ledger_copy_at(w->c, LEDGER_LATENCIES, struct ledger_latency, i);
        const struct account_row *row = from->calls ? meant(w, from->account) : NULL;
        if (!row)
            continue;
        struct tags_latency *to = latency_of(w->d, &row->key);
        to->calls += from->calls;
        to->sum_ns += from->sum_ns;
        to->most_ns = from->most_ns > to->most_ns ? from->most_ns : to->most_ns;
        for (unsigned class = 0; class < LEDGER_LATENCY_CLASSES; class ++)
            to->of[class] += from->of[class];
    }
}

uint64_t tags_latency_quantile(const struct tags_latency *l, double of)
{
    uint64_t all = 0, so_far = 0;
    for (unsigned class = 0; class < LEDGER_LATENCY_CLASSES; class ++)
        all += l->of[class];
    uint64_t wanted = (uint64_t)ceil(of * (double)all);
    for (uint32_t class = 0; class + 1 < LEDGER_LATENCY_CLASSES; class ++) {
        uint64_t most = ledger_latency_least(class + 1) - 1;
        so_far += l->of[class];
        if (so_far >= wanted)
            return most < l->most_ns ? most : l->most_ns;
    }
    return l->most_ns;
}

/* ---- all of it ---- */

/* Fills the details from the ledger's copy. The copy is older than the rows, so that each place that it names has a
 * row. */
static void take(struct work *w, struct symbols *symbols, const char *root)
{
    uint32_t *number;
    struct profile *p = ledger_profile_stacks(w->c, &number);
    profile_names_apply(symbols, p, root);
    take_calls(w, p, number);
    merge_calls(w->d);
    take_latencies(w);
    w->d->lost = w->c->header.losses[LEDGER_LOST_DETAILS];
    free(number);
    profile_free(p);
}

int tags_details_read(struct tags_details *d, struct alloc_texts *texts, pid_t pid, const struct query *where,
                      struct symbols *symbols, struct error *e)
{
    struct tags_source source;
    struct ledger_copy c;
    *d = (struct tags_details){0};
    int bad = tags_open(&source, pid, e);
    if (bad)
        return bad;
    struct tags_reading r = {.idle = true, .process = {.pid = pid, .alive = source.alive}};
    struct work w = {.d = d, .c = &c, .rows = &r.rows, .where = where, .texts = texts};
    bad = ledger_copy_read(source.fd, &c, e);
    if (!bad) {
        bad = tags_read_places(&r, texts, source.fd, symbols, source.root, e);
        if (!bad) {
            number_rows(&w, r.account.at);
            take(&w, symbols, source.root);
        }
        ledger_copy_release(&c);
    }
    d->process = r.process;
    vec_release(&w.row);
    tags_reading_release(&r);
    tags_close(&source);
    return bad;
}

int sites_details_read(struct tags_details *d, struct alloc_texts *texts, pid_t pid,
                       const struct query *where, struct symbols *symbols, const struct wrappers *wrappers,
                       struct error *e)
{
    struct container_roots roots = {0};
    struct sites_reading r = {.idle = true, .process = {.pid = pid}};
    struct ledger_copy c;
    struct work w = {.d = d, .c = &c, .rows = &r.rows, .where = where, .texts = texts, .sites = true};
    *d = (struct tags_details){0};
    int fd = sites_open(pid, &r.process.alive, e);
    if (fd < 0)
        return fd;
    const char *root = r.process.alive ? container_root(&roots, pid) : "";
    int bad = ledger_copy_read(fd, &c, e);
    if (!bad) {
        bad = sites_read_places(&r, texts, fd, symbols, wrappers, root, e);
        if (!bad) {
            number_rows(&w, r.number.at);
            take(&w, symbols, root);
        }
        ledger_copy_release(&c);
    }
    d->process = r.process;
    vec_release(&w.row);
    sites_reading_release(&r);
    close(fd);
    container_roots_release(&roots);
    return bad;
}

void tags_details_release(struct tags_details *d)
{
    vec_each (struct tags_call, call, &d->calls)
        free(call->stack);
    vec_release(&d->calls);
    vec_release(&d->latencies);
}
