/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/trace_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_folder.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/ctf_writer.h"
#include "collect/trace/kernel_rings.h"
#include "collect/trace/ring_image.h"
#include "collect/trace/tick_clock.h"

#define ANCHORS_NS 10000000u
#define LAPS_MOST  2u /* a program may write faster than we read */

struct snapped_image {
    struct ring_image rings;
    struct tick_clock clock;
    struct tick_anchor *anchors; /* of the agent, for the clock; NULL: it has none */
    bool is_ticks, is_kernel;
    struct user_events *user;
};

/* A copy of events that lie behind one another. */
struct snapped_piece {
    size_t image;
    uint32_t ring;
    uint64_t older; /* events of the ring before it that are gone */
    struct ring_piece p;
};

/*
 * At first all that the rings have is copied, as fast as possible: a program may fill its rings within some
 * milliseconds.
 */
struct snapshot {
    const struct trace_snapshot_options *o;
    struct trace_snapshot_counts *n;
    struct VEC(struct snapped_image) images;
    struct VEC(struct snapped_piece) pieces;
    struct VEC(uint64_t *) rooms; /* memory for each piece, of room_bytes */
    uint64_t room_bytes;          /* the largest packet of all rings */
    struct ctf_writer *writer, *kernel_writer;
    struct user_classes *user;
    uint64_t since_ns, until_ns;
    struct error *e;
};

/* The clock of an image that may have ended long ago: the rings have the anchors of its agent. */
static bool find_past_clock(struct snapped_image *i)
{
    struct ring_anchor left[RING_ANCHORS];
    const uint32_t n = ring_reader_anchors(i->rings.reader, left);
    i->anchors = mem_array(n + 1, sizeof(*i->anchors));
    for (uint32_t k = 0; k < n; k++)
        i->anchors[k] = (struct tick_anchor){left[k].ticks, left[k].ns, left[k].width_ticks};
    return tick_clock_init_past(&i->clock, i->anchors, n, tick_clock_anchor());
}

/* Without them, its ledger has the first pair of both clocks. */
static void find_clock(struct snapped_image *i, const char *dir)
{
    if (find_past_clock(i))
        return;
    struct buf path = BUF_INIT;
    struct ledger_header h;
    struct tick_anchor first = tick_clock_anchor();
    buf_printf(&path, "%s/", dir);
    ring_image_add_name(&path, &i->rings, LEDGER_SUFFIX);
    int fd = ledger_file_open(buf_str(&path), O_RDONLY);
    if (fd >= 0 && !ledger_copy_header(fd, &h, NULL) && h.clock == LEDGER_CLOCK_TSC)
        first = (struct tick_anchor){h.began_ticks, h.began_monotonic_ns, 0};
    else
        nanosleep(&(struct timespec){.tv_nsec = ANCHORS_NS}, NULL);
    tick_clock_init(&i->clock, first, tick_clock_anchor());
    if (fd >= 0)
        close(fd);
    buf_release(&path);
}

static void add_image(struct snapshot *s, const struct snapped_image *i)
{
    const uint64_t packet_bytes = ring_reader_header(i->rings.reader)->packet_bytes;
    if (packet_bytes > s->room_bytes)
        s->room_bytes = packet_bytes;
    *vec_push(&s->images) = *i;
}

static int open_image(struct snapshot *s, const struct trace_snapshot_source *source)
{
    struct snapped_image i = {.is_ticks = false};
    const int bad = ring_image_look(&i.rings, source->dir, source->rings);
    if (bad)
        return error_set(s->e, -bad, "cannot read %s/%s: %s", source->dir, source->rings, strerror(-bad));
    i.is_ticks = ring_reader_header(i.rings.reader)->clock;
    i.user = user_events_new(source->dir, i.rings.pid, i.rings.id);
    if (s->o->clock)
        i.clock = *s->o->clock;
    else if (i.is_ticks)
        find_clock(&i, source->dir);
    add_image(s, &i);
    return 0;
}

static int open_kernel(struct snapshot *s)
{
    struct snapped_image i = {.is_kernel = true};
    if (!s->o->kernel.rings)
        return 0;
    const int bad = ring_image_borrow(&i.rings, s->o->kernel.rings, s->o->kernel.bytes);
    if (bad)
        return error_set(s->e, -bad, "cannot read the kernel's rings: their layout is unknown");
    add_image(s, &i);
    return 0;
}

static uint64_t time_at(const struct snapped_image *i, uint64_t ticks)
{
    return i->is_ticks ? tick_clock_ns(&i->clock, ticks) : ticks;
}

/* Returns memory for the next piece. */
static uint64_t *room_for_next(struct snapshot *s)
{
    if (s->pieces.len == s->rooms.len)
        *vec_push(&s->rooms) = mem_aligned(sizeof(uint64_t), s->room_bytes);
    return s->rooms.at[s->pieces.len];
}

static void copy_ring(struct snapshot *s, size_t image, uint32_t ring)
{
    struct snapped_image *i = &s->images.at[image];
    const struct ring_header *h = ring_reader_header(i->rings.reader);
    uint64_t left = LAPS_MOST * h->ring_bytes / h->packet_bytes, older = 0;
    struct ring_piece p;
    for (int found; left && (found = ring_image_next(&i->rings, ring, &p)); left--) {
        if (found < 0) {
            s->n->damaged++;
            continue;
        }
        older += p.overwritten;
        if (p.ticks && time_at(i, p.ticks) > s->until_ns)
            break;
        uint64_t *words = room_for_next(s);
        memcpy(words, p.words, p.n_words * sizeof(*words));
        p.words = words;
        *vec_push(&s->pieces) = (struct snapped_piece){image, ring, older, p};
    }
    s->n->older += older;
    for (int why = 0; why < RING_LOSSES; why++)
        if (why != RING_LOST_FILTERED)
            s->n->lost += ring_reader_lost(i->rings.reader, ring, (enum ring_loss)why);
}

/*
 * Copies what there is now. The second call takes much less time than the first: by then the pages of the rings are
 * mapped, and those of the copies are there.
 */
static void copy_all(struct snapshot *s)
{
    *s->n = (struct trace_snapshot_counts){.images = s->images.len - (s->o->kernel.rings != NULL)};
    s->pieces.len = 0;
    vec_each (struct snapped_image, i, &s->images)
        ring_image_begin_anew(&i->rings);
    s->until_ns = clock_ns(CLOCK_MONOTONIC);
    for (size_t k = 0; k < s->images.len; k++)
        for (uint32_t ring = 0; ring < ring_reader_rings(s->images.at[k].rings.reader); ring++)
            copy_ring(s, k, ring);
}

/* Leaves those events in the piece that belong to the time of the snapshot. Returns the time of the last one; 0: none
 * is left. *first_ns: receives that of the first one that it had. */
static uint64_t cut(struct snapshot *s, struct snapped_piece *of, uint64_t *first_ns)
{
    const struct snapped_image *i = &s->images.at[of->image];
    struct ring_piece *p = &of->p;
    uint32_t at = 0, from = 0, to = 0, n = 0;
    uint64_t last_ns = 0;
    bool bad;
    *first_ns = 0;
    for (const struct ring_event *event; (event = ring_piece_event(p, &at, &bad));) {
        const uint64_t ns = time_at(i, event->ticks);
        *first_ns = *first_ns ? *first_ns : ns;
        if (ns > s->until_ns)
            break;
        if (ns < s->since_ns) {
            from = at;
            continue;
        }
        last_ns = ns;
        to = at;
        n++;
    }
    s->n->damaged += bad;
    memmove((uint64_t *)p->words, p->words + from, n ? (to - from) * sizeof(*p->words) : 0);
    p->n_words = n ? to - from : 0;
    p->n_events = n;
    return last_ns;
}

/* Cuts all pieces to the time of the snapshot. */
static void cut_all(struct snapshot *s)
{
    struct trace_snapshot_counts *n = s->n;
    n->oldest_ns = 0;
    vec_each (struct snapped_piece, of, &s->pieces) {
        uint64_t first_ns;
        const uint64_t last_ns = cut(s, of, &first_ns);
        if (!s->since_ns && of->p.overwritten && first_ns > n->complete_ns)
            n->complete_ns = first_ns;
        if (last_ns > n->newest_ns)
            n->newest_ns = last_ns;
        first_ns = first_ns > s->since_ns ? first_ns : s->since_ns;
        if (last_ns && (!n->oldest_ns || first_ns < n->oldest_ns))
            n->oldest_ns = first_ns;
    }
}

static struct ctf_writer *writer_of(const struct snapshot *s, const struct snapped_image *i)
{
    return i->is_kernel ? s->kernel_writer : s->writer;
}

static int write_piece(struct snapshot *s, const struct snapped_piece *of, int stream)
{
    const struct snapped_image *i = &s->images.at[of->image];
    uint64_t lost = i->rings.overwrites ? of->older : 0;
    for (int k = 0; k < RING_LOSSES; k++)
        lost += of->p.lost[k];
    const uint32_t cpu =
        i->is_kernel ? kernel_rings_cpu(of->ring, ring_reader_header(i->rings.reader)->cpus) : of->ring;
    const int bad = ctf_writer_packet(writer_of(s, i), stream, &of->p, i->rings.pid, i->rings.id, cpu, lost,
                                      i->is_ticks ? &i->clock : NULL);
    if (bad)
        return error_set(s->e, -bad, "cannot write the trace: %s", strerror(-bad));
    s->n->events += of->p.n_events;
    s->n->kernel_events += i->is_kernel ? of->p.n_events : 0;
    s->n->bytes += ctf_writer_packet_bytes(&of->p);
    return 0;
}

/* The program's own events get the numbers of the trace. Returns 0, or -errno with a line. */
static int translate(struct snapshot *s, struct snapped_piece *of)
{
    const struct snapped_image *i = &s->images.at[of->image];
    return i->is_kernel || !of->p.n_events
               ? 0
               : user_classes_translate(s->user, i->user, &of->p, s->writer, &s->n->user, s->e);
}

static double residual_of(const struct snapped_image *i)
{
    return !i->is_ticks      ? 0
           : i->clock.n_past ? tick_clock_residual(i->clock.past, i->clock.n_past)
                             : i->clock.residual_ns;
}

/* What the clocks are worth, in the metadata. */
static void tell_clocks(struct snapshot *s)
{
    double most_ns = 0;
    vec_each (const struct snapped_image, i, &s->images)
        most_ns = fmax(most_ns, residual_of(i));
    ctf_writer_clocks(s->writer, most_ns, true);
}

static int write_all(struct snapshot *s)
{
    const struct snapped_piece *before = NULL;
    int stream = -1, bad = 0;
    vec_each (struct snapped_piece, of, &s->pieces) {
        const struct snapped_image *i = &s->images.at[of->image];
        bad = bad ? bad : translate(s, of);
        if (bad || !of->p.n_events)
            continue;
        if (!before || before->image != of->image || before->ring != of->ring) {
            if (stream >= 0)
                close(stream);
            stream = ctf_writer_stream(writer_of(s, i), i->rings.pid, i->rings.id, of->ring, s->e);
            before = of;
        }
        bad = stream < 0 ? stream : write_piece(s, of, stream);
    }
    if (stream >= 0)
        close(stream);
    return bad;
}

static void release(struct snapshot *s)
{
    vec_each (uint64_t *, room, &s->rooms)
        free(*room);
    vec_release(&s->rooms);
    vec_each (struct snapped_image, i, &s->images) {
        ring_image_close(&i->rings);
        free(i->anchors);
        user_events_free(i->user);
    }
    vec_release(&s->pieces);
    vec_release(&s->images);
    ctf_writer_free(s->writer);
    ctf_writer_free(s->kernel_writer);
    user_classes_free(s->user);
}

/* Makes the folders. */
static int make_writers(struct snapshot *s, const char *folder)
{
    struct buf path = BUF_INIT;
    uint32_t n;
    const struct event_class *classes = agent_events(&n);
    buf_printf(&path, "%s/ust", folder);
    int bad = ctf_writer_new(&s->writer, buf_str(&path), "ust", classes, n, s->e);
    if (!bad && s->o->kernel.rings) {
        buf_reset(&path);
        buf_printf(&path, "%s/kernel", folder);
        bad = ctf_writer_new(&s->kernel_writer, buf_str(&path), "kernel", s->o->kernel.classes,
                             s->o->kernel.n_classes, s->e);
    }
    buf_release(&path);
    return bad;
}

int trace_snapshot_write(const char *folder, const struct trace_snapshot_source *sources, size_t n,
                         const struct trace_snapshot_options *o, struct trace_snapshot_counts *out,
                         struct error *e)
{
    struct snapshot s = {.o = o, .n = out, .e = e, .user = user_classes_new()};
    int bad = 0;
    *out = (struct trace_snapshot_counts){.images = n};
    for (size_t k = 0; !bad && k < n; k++)
        bad = open_image(&s, &sources[k]);
    bad = bad ? bad : open_kernel(&s);
    for (int pass = 0; !bad && pass < 2; pass++)
        copy_all(&s);
    cut_all(&s);
    if (o->last_ns && out->newest_ns > o->last_ns) {
        s.since_ns = out->newest_ns - o->last_ns;
        cut_all(&s);
    }
    bad = bad ? bad : make_writers(&s, folder);
    bad = bad ? bad : write_all(&s);
    if (!bad)
        tell_clocks(&s);
    release(&s);
    return bad;
}
