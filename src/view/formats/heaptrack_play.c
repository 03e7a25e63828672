/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "view/formats/heaptrack_parts.h"

#define PAGE_BYTES 4096u

struct player {
    struct sink *out;
    struct heaptrack_pieces *pieces;
    uint64_t live, most; /* bytes: now; never more than this */
    uint32_t n_infos;
    /* The reader's variable: the info of the latest allocation, 0 after a free. The reader counts an allocation as
     * temporary if the info of the free equals this. */
    uint32_t last;
};

void heaptrack_put(struct sink *out, char what, uint64_t number)
{
    char line[24], *at = line + sizeof(line);
    *--at = '\n';
    do
        *--at = "0123456789abcdef"[number & 15];
    while (number >>= 4);
    *--at = ' ';
    *--at = what;
    sink_write(out, at, (size_t)(line + sizeof(line) - at));
}

/* An info is named right before its first event: heaptrack_gui requires that. */
static void allocate(struct player *w, struct heaptrack_piece *c)
{
    uint32_t *info = &c->info[c->role == HEAPTRACK_TEMPORARY ? 0 : c->allocated & 1];
    if (*info == HEAPTRACK_NO_INFO) {
        *info = w->n_infos++;
        sink_printf(w->out, "a %llx %x\n", (unsigned long long)c->size, c->trace);
    }
    heaptrack_put(w->out, '+', *info);
    w->last = *info;
    w->live += c->size;
    c->allocated++;
}

/* Frees an object of the piece. Both infos of a piece have the same size and stack, and the reader does not pair frees
 * with allocations: the info is used that does not make the object temporary. Without such an info, nothing is freed,
 * except with `anyway`. */
static bool release(struct player *w, struct heaptrack_piece *c, bool anyway)
{
    uint32_t info = c->info[c->released & 1], other = c->info[~c->released & 1];
    if (info == HEAPTRACK_NO_INFO || (w->last == info && other != HEAPTRACK_NO_INFO))
        info = other;
    if (w->last == info && !anyway)
        return false;
    heaptrack_put(w->out, '-', info);
    w->last = 0;
    w->live -= c->size;
    c->released++;
    return true;
}

static void release_all(struct player *w, struct heaptrack_piece *c, uint64_t n, bool anyway)
{
    while (c->released < n && c->released < c->allocated && release(w, c, anyway))
        ;
}

static uint64_t due(const struct heaptrack_piece *c, double part)
{
    return part >= 1 ? c->n : (uint64_t)((double)c->n * part + c->phase);
}

/* Allocates the objects of a piece that are due. Lasting objects make up the peak, others remain below it. If there is
 * no room, the object waits for a later step. */
static void allocate_due(struct player *w, struct heaptrack_piece *c, const struct heaptrack_step *now)
{
    uint64_t to_allocate = due(c, now->allocated[c->role]), to_release = due(c, now->released[c->role]);
    uint64_t most = c->role < HEAPTRACK_KEPT ? w->most - 1 : w->most;
    while (c->allocated < to_allocate && w->live + c->size <= most) {
        allocate(w, c);
        release_all(w, c, to_release, c->role == HEAPTRACK_TEMPORARY || c->role == HEAPTRACK_TOP);
    }
}

static void release_due(struct player *w, const struct heaptrack_step *now, bool anyway)
{
    vec_each (struct heaptrack_piece, c, w->pieces)
        release_all(w, c, due(c, now->released[c->role]), anyway);
}

/* Releases all objects that are due before those of the peak and the end are allocated. An object that was allocated
 * last would be temporary: one of the lasting objects is allocated before its release, if there is room. */
static void release_before_lasting(struct player *w, const struct heaptrack_step *now)
{
    release_due(w, now, false);
    vec_each (struct heaptrack_piece, c, w->pieces)
        if (c->role >= HEAPTRACK_KEPT && c->role < HEAPTRACK_TOP && w->last && w->live + c->size <= w->most &&
            c->allocated < due(c, now->allocated[c->role])) {
            allocate(w, c);
            break;
        }
    release_due(w, now, true);
}

/* At the peak and at the end nothing is put off. */
static void take_step(struct player *w, const struct heaptrack_step *now, bool peak_or_end)
{
    release_due(w, now, false);
    for (enum heaptrack_role role = 0; role < HEAPTRACK_ROLES; role++) {
        if (role == HEAPTRACK_KEPT && peak_or_end)
            release_before_lasting(w, now);
        else if (role == HEAPTRACK_KEPT)
            release_due(w, now, false);
        vec_each (struct heaptrack_piece, c, w->pieces)
            if (c->role == role)
                allocate_due(w, c, now);
    }
}

/* Allocates and frees the objects that found no room at any step. They become so small that three of them fit. Each is
 * freed after the next one was allocated: it is not temporary then. */
static void play_rest(struct player *w, const struct heaptrack_step *end)
{
    uint64_t room = (w->most - w->live) / 3;
    struct heaptrack_piece *before = NULL;
    w->most++;
    vec_each (struct heaptrack_piece, c, w->pieces) {
        if (c->allocated == c->n)
            continue;
        c->size = c->size < room ? c->size : room;
        c->info[0] = c->info[1] = HEAPTRACK_NO_INFO;
        allocate_due(w, c, end);
        if (before)
            release_all(w, before, before->n, true);
        before = c;
    }
    if (before)
        release_all(w, before, before->n, true);
}

/* After a free the reader takes info 0 for that of the latest allocation. So info 0 goes to an object that is never
 * freed, or that is temporary. */
static void allocate_first(struct player *w)
{
    vec_each (struct heaptrack_piece, c, w->pieces)
        if (c->size < w->most && (c->role == HEAPTRACK_KEPT || c->role == HEAPTRACK_TEMPORARY)) {
            allocate(w, c);
            if (c->role == HEAPTRACK_TEMPORARY)
                release(w, c, true);
            return;
        }
}

static void play_steps(struct player *w, const struct heaptrack_steps *steps, uint64_t began_ns)
{
    uint64_t shown_ms = 0;
    size_t last = steps->at.len - 1;
    for (size_t i = 0; i <= last; i++) {
        const struct heaptrack_step *now = &steps->at.at[i];
        uint64_t ms = now->time_ns > began_ns ? (now->time_ns - began_ns) / 1000000 : 0;
        if (ms > shown_ms)
            shown_ms = ms;
        heaptrack_put(w->out, 'c', shown_ms);
        if (now->rss_bytes)
            heaptrack_put(w->out, 'R', now->rss_bytes / PAGE_BYTES);
        if (i == 0)
            allocate_first(w);
        take_step(w, now, i == steps->peak || i == last);
        /* The reader draws what there was up to a time stamp: so one follows at once. */
        if (i < last && now->time_ns + 1000000 < now[1].time_ns)
            heaptrack_put(w->out, 'c', ++shown_ms);
    }
    play_rest(w, &steps->at.at[last]);
}

void heaptrack_play(struct sink *out, struct heaptrack_pieces *pieces, const struct heaptrack_steps *s,
                    uint64_t began_ns)
{
    struct player w = {.out = out, .pieces = pieces};
    double most = 0, largest = 0;
    vec_each (const struct heaptrack_piece, c, pieces)
        largest = fmax(largest, (double)c->size);
    vec_each (const struct heaptrack_step, it, &s->at)
        most = fmax(most, it->live);
    w.most = (uint64_t)fmin(most > 0 ? most : 2 * largest + 1, (double)(1ull << 62));
    play_steps(&w, s, began_ns);
}
