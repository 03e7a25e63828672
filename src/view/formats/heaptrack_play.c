/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "view/formats/heaptrack_parts.h"

#define PAGE_BYTES 4096u

struct player {
    struct sink *out;
    struct heaptrack_pieces *pieces;
    const struct heaptrack_steps *steps;
    uint64_t live, most; /* bytes: now; never more than this */
    uint32_t n_infos;
    /* The reader's variable: the info of the latest allocation, 0 after a free. The reader counts an allocation as
     * temporary if the info of the free equals this. */
    uint32_t last;
    /* Frees that are put off, because the reader would count a temporary allocation now. They are written after the
     * next event that changes `last`. */
    struct {
        uint32_t info;
        uint64_t size, n;
    } owed;
    struct VEC(uint32_t) queue; /* pieces of the brief objects that are live, oldest first */
    size_t queue_first;
    uint64_t queue_bytes;
};

/* ---- events ---- */

static void put(struct player *w, char what, uint64_t number)
{
    char line[24], *at = line + sizeof(line);
    *--at = '\n';
    do
        *--at = "0123456789abcdef"[number & 15];
    while (number >>= 4);
    *--at = ' ';
    *--at = what;
    sink_write(w->out, at, (size_t)(line + sizeof(line) - at));
}

static void put_free(struct player *w, uint32_t info, uint64_t size)
{
    put(w, '-', info);
    w->live -= size;
    w->last = 0;
}

/* Writes the frees that were put off; with `anyway` also if the reader takes them for temporary. */
static void pay(struct player *w, bool anyway)
{
    while (w->owed.n && (anyway || w->last != w->owed.info)) {
        put_free(w, w->owed.info, w->owed.size);
        w->owed.n--;
    }
}

/* An info is named right before its first event: heaptrack_gui counts on that. */
static uint32_t info_of(struct player *w, struct heaptrack_piece *c, uint64_t object)
{
    uint32_t *info = &c->info[object & 1];
    if (*info == HEAPTRACK_NO_INFO) {
        *info = w->n_infos++;
        sink_printf(w->out, "a %llx %x\n", (unsigned long long)c->size, c->trace);
    }
    return *info;
}

static void allocate(struct player *w, struct heaptrack_piece *c)
{
    uint32_t info = info_of(w, c, c->made++);
    put(w, '+', info);
    w->last = info;
    w->live += c->size;
    pay(w, false);
}

/* Frees an object of the piece, and not as a temporary one. Both infos of a piece have the same size and stack, and
 * the reader does not pair frees with allocations: a free of either info does. An info without an allocation may not
 * be used. */
static void release(struct player *w, struct heaptrack_piece *c)
{
    uint32_t info = info_of(w, c, c->gone++), other = c->info[c->gone & 1];
    if (w->last == info && other != HEAPTRACK_NO_INFO)
        info = other;
    if (w->last == info) {
        w->owed.info = info;
        w->owed.size = c->size;
        w->owed.n++;
        return;
    }
    put_free(w, info, c->size);
    pay(w, false);
}

static void touch(struct player *w, struct heaptrack_piece *c)
{
    uint32_t info = info_of(w, c, 0);
    c->made++;
    put(w, '+', info);
    put(w, '-', info);
    w->last = 0;
    pay(w, false);
}

/* ---- brief objects ---- */

static void end_oldest(struct player *w)
{
    struct heaptrack_piece *c = &w->pieces->at[w->queue.at[w->queue_first++]];
    w->queue_bytes -= c->size;
    release(w, c);
    if (w->queue_first == w->queue.len)
        w->queue_first = w->queue.len = 0;
}

/* Ends brief objects until `more` bytes fit below the line, or there is none left. */
static void make_room(struct player *w, uint64_t more, double line)
{
    while (w->queue_first < w->queue.len && (double)w->live + (double)more > line)
        end_oldest(w);
}

/* Whether an object of this size that is allocated now stays below the peak. Only a free that is put off hinders
 * that. */
static bool has_room(const struct player *w, uint64_t size)
{
    return w->live + size < w->most || !w->owed.n;
}

/* Allocates a brief object; false if it must wait. */
static bool begin_brief(struct player *w, uint32_t piece, double line)
{
    struct heaptrack_piece *c = &w->pieces->at[piece];
    make_room(w, c->size, line);
    if (!has_room(w, c->size))
        return false;
    allocate(w, c);
    *vec_push(&w->queue) = piece;
    w->queue_bytes += c->size;
    return true;
}

/* How far brief objects may go: never as high as the peak, which must be reached by what was live then. */
static double below_peak(const struct player *w, const struct heaptrack_step *now)
{
    return fmin(now->live, (double)w->most - 1);
}

/* What lasts, before step i. */
static double lasting(const struct player *w, const double bytes[static HEAPTRACK_ROLES], size_t i)
{
    const struct heaptrack_step *now = &w->steps->at.at[i];
    const struct heaptrack_step none = {0}, *before = i ? now - 1 : &none;
    return before->grown * (bytes[HEAPTRACK_KEPT] + bytes[HEAPTRACK_PEAK]) -
           now->shrunk * bytes[HEAPTRACK_PEAK] + before->late * bytes[HEAPTRACK_LATE];
}

/* Share of what a piece's objects are spread over: up to the last step that has room for one. */
static void find_limits(const struct player *w, const double bytes[static HEAPTRACK_ROLES], double *limits)
{
    vec_each (const struct heaptrack_piece, c, w->pieces) {
        size_t i = w->steps->at.len - 1;
        if (c->role < HEAPTRACK_BRIEF)
            continue;
        while (i && lasting(w, bytes, i) + (double)c->size >= (double)w->most)
            i--;
        limits[c - w->pieces->at] = w->steps->at.at[i].share;
    }
}

static uint64_t due(const struct heaptrack_piece *c, double part)
{
    return part >= 1 ? c->n : (uint64_t)((double)c->n * part + c->phase);
}

/* Plays as many brief or temporary objects of a piece as are due. An object that finds no room, because the last
 * free was put off, waits for a later step. */
static void pass_by(struct player *w, uint32_t piece, const struct heaptrack_step *now, double limit)
{
    struct heaptrack_piece *c = &w->pieces->at[piece];
    uint64_t want = due(c, limit > 0 ? now->share / limit : 1);
    while (c->made < want && w->live - w->queue_bytes + c->size < w->most) {
        if (c->role == HEAPTRACK_BRIEF) {
            if (!begin_brief(w, piece, below_peak(w, now)))
                return;
            continue;
        }
        make_room(w, c->size, (double)w->most - 1);
        if (!has_room(w, c->size))
            return;
        touch(w, c);
    }
}

/* What the curve has above what is live by now was brief: more of these than are due begin here, of each piece
 * alike. */
static void fill(struct player *w, const struct heaptrack_step *now)
{
    double line = below_peak(w, now), missing = line - (double)w->live, left = 0;
    vec_each (const struct heaptrack_piece, c, w->pieces)
        left += c->role == HEAPTRACK_BRIEF ? (double)c->size * (double)(c->n - c->made) : 0;
    if (!(missing > 0) || !(left > 0))
        return;
    double part = fmin(missing / left, 1);
    for (uint32_t i = 0; i < w->pieces->len; i++) {
        struct heaptrack_piece *c = &w->pieces->at[i];
        if (c->role != HEAPTRACK_BRIEF)
            continue;
        uint64_t more = (uint64_t)((double)(c->n - c->made) * part + c->phase);
        for (; more && c->made < c->n && (double)w->live + (double)c->size <= line; more--)
            begin_brief(w, i, line);
    }
}

/* What found no room at any step, for its size is only a mean: it becomes so small that it fits. */
static void squeeze_in(struct player *w)
{
    for (uint32_t i = 0; i < w->pieces->len; i++) {
        struct heaptrack_piece *c = &w->pieces->at[i];
        if (c->role < HEAPTRACK_BRIEF || c->made == c->n)
            continue;
        uint64_t room = w->most - w->live;
        c->size = c->size < room / 2 ? c->size : room / 2;
        c->info[0] = c->info[1] = HEAPTRACK_NO_INFO;
        while (c->made < c->n && c->role == HEAPTRACK_TEMPORARY)
            touch(w, c);
        while (c->made < c->n) {
            c->gone = c->made;
            pay(w, w->live + c->size > w->most);
            allocate(w, c);
            release(w, c);
        }
    }
}

/* ---- one step after the other ---- */

static void take_step(struct player *w, const struct heaptrack_step *now, const double *limits)
{
    vec_each (struct heaptrack_piece, c, w->pieces)
        for (uint64_t want = c->role == HEAPTRACK_PEAK ? due(c, now->shrunk) : 0;
             c->gone < want && c->gone < c->made;)
            release(w, c);
    make_room(w, 0, below_peak(w, now));
    for (uint32_t i = 0; i < w->pieces->len; i++)
        if (w->pieces->at[i].role >= HEAPTRACK_BRIEF)
            pass_by(w, i, now, limits[i]);
    vec_each (struct heaptrack_piece, c, w->pieces) {
        if (c->role >= HEAPTRACK_BRIEF)
            continue;
        for (uint64_t want = due(c, c->role == HEAPTRACK_LATE ? now->late : now->grown); c->made < want;) {
            make_room(w, c->size, below_peak(w, now));
            if (w->live + c->size >= w->most)
                pay(w, true);
            if (w->live + c->size > w->most) /* after the peak; at the end there is room for all */
                break;
            allocate(w, c);
        }
    }
    fill(w, now);
}

static void play_steps(struct player *w, const double *limits, uint64_t began_ns)
{
    uint64_t shown_ms = 0;
    for (size_t i = 0; i < w->steps->at.len; i++) {
        const struct heaptrack_step *now = &w->steps->at.at[i];
        uint64_t ms = now->time_ns > began_ns ? (now->time_ns - began_ns) / 1000000 : 0;
        if (ms > shown_ms)
            shown_ms = ms;
        put(w, 'c', shown_ms);
        if (now->rss_bytes)
            put(w, 'R', now->rss_bytes / PAGE_BYTES);
        take_step(w, now, limits);
        /* The reader draws what there was up to a time stamp: so one follows at once. */
        if (i + 1 < w->steps->at.len && now->time_ns + 1000000 < now[1].time_ns)
            put(w, 'c', ++shown_ms);
    }
    while (w->queue_first < w->queue.len)
        end_oldest(w);
    pay(w, true);
    squeeze_in(w);
    pay(w, true);
}

void heaptrack_play(struct sink *out, struct heaptrack_pieces *pieces, const struct heaptrack_steps *s,
                    uint64_t began_ns)
{
    struct player w = {.out = out, .pieces = pieces, .steps = s};
    double bytes[HEAPTRACK_ROLES] = {0}, line = 0, largest = 0;
    double *limits = mem_array(pieces->len + 1, sizeof(*limits));
    vec_each (const struct heaptrack_piece, c, pieces) {
        bytes[c->role] += (double)c->size * (double)c->n;
        largest = fmax(largest, (double)c->size);
    }
    for (size_t i = 0; i < s->at.len; i++)
        line = fmax(line, s->at.at[i].live);
    line = fmax(line, bytes[HEAPTRACK_KEPT] + fmax(bytes[HEAPTRACK_PEAK], bytes[HEAPTRACK_LATE]));
    w.most = (uint64_t)fmin(line > 0 ? line : 2 * largest + 1, (double)(1ull << 62));
    find_limits(&w, bytes, limits);
    play_steps(&w, limits, began_ns);
    vec_release(&w.queue);
    free(limits);
}
