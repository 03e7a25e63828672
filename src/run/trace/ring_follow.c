/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/ring_follow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/ctf_writer.h"
#include "collect/trace/event_window.h"
#include "collect/trace/ring_image.h"
#include "model/trace/clock_kind.h"
#include "run/sum/ring_sums.h"
#include "run/trace/event_times.h"
#include "run/trace/ring_losses.h"
#include "run/trace/ring_rate.h"
#include "run/worker_thread.h"

#define FIRST_ANCHORS_NS 10000000u /* between two anchors of the clock */
#define ALIVE_NS         100000000u
#define HELD_BYTES       (UINT64_C(64) << 20) /* of an image that has a half written event */

/* A ring of an image. */
struct followed_ring {
    int stream; /* -1: nothing was written yet */
    uint64_t stream_bytes, events, event_bytes;
    struct ring_rate rate;
    struct ring_losses losses;
    uint64_t number, lost; /* of the last packet */
};

struct followed {
    struct ring_image image;
    struct followed_ring *rings;
    struct user_events *user;
    struct event_window *window; /* NULL: all events are written */
    uint64_t asked_ns;           /* whether the image has ended */
    uint64_t round_ns;           /* when its rings began to be read last */
};

struct ring_follow {
    struct ring_follow_options o;
    char *dir;
    int folder;
    pthread_t thread;
    atomic_bool stop;
    struct ctf_writer *writer;
    struct user_classes *user;
    struct event_filter *filter; /* NULL: there is none */
    struct tick_clock clock;
    struct trace_budget budget;
    uint64_t now_ns, began_ns, scanned_ns;
    struct event_span span;
    struct VEC(struct followed) images;
    struct VEC(uint64_t) ended; /* ids of images that are read to the end, and whose files stay */
    struct ring_follow_counts counts;
    int bad;
    struct error error;
};

static bool is_known(const struct ring_follow *f, uint64_t id)
{
    vec_each (const struct followed, i, &f->images)
        if (i->image.id == id)
            return true;
    vec_each (const uint64_t, ended, &f->ended)
        if (*ended == id)
            return true;
    return false;
}

/* Passes over what the rings of a process have, to which we came later. */
static void pass_over(struct followed *i)
{
    struct ring_piece p;
    for (uint32_t ring = 0; ring < ring_reader_rings(i->image.reader); ring++) {
        ring_losses_begin(&i->rings[ring].losses, i->image.reader, ring);
        const struct ring_header *h = ring_reader_header(i->image.reader);
        /* twice its packets: a program may write faster than we read */
        for (uint64_t left = 2 * h->ring_bytes / h->packet_bytes;
             left && ring_image_next(&i->image, ring, &p); left--)
            ;
    }
}

static void add_image(struct ring_follow *f, const char *name)
{
    struct followed i = {.rings = NULL};
    pid_t pid;
    uint64_t id;
    if (!ring_image_name(name, &pid, &id) || (f->o.only && f->o.only != pid) || is_known(f, id) ||
        ring_image_open(&i.image, f->dir, name))
        return;
    const struct ring_header *h = ring_reader_header(i.image.reader);
    const uint32_t rings = ring_reader_rings(i.image.reader);
    i.rings = mem_array(rings, sizeof(*i.rings));
    for (uint32_t ring = 0; ring < rings; ring++)
        i.rings[ring] = (struct followed_ring){.stream = -1, .rate.since_ns = f->now_ns};
    i.user = user_events_new(f->dir, i.image.pid, i.image.id);
    if (f->filter || f->o.clock)
        i.window = event_window_new(&(struct event_window_options){
            .filter = f->filter,
            .user = f->user,
            .pid = i.image.pid,
            .image_id = i.image.id,
            .rings = rings,
            .orders = h->clock == RING_CLOCK_NONE,
            .interpolates = h->clock == RING_CLOCK_EVERY,
            .has_ticks = h->clock == RING_CLOCK_TSC,
            .base_ns = h->clock == RING_CLOCK_COUNTER || h->clock == RING_CLOCK_NONE ? f->began_ns : 0});
    if (f->o.only && !f->scanned_ns)
        pass_over(&i);
    f->counts.images++;
    f->counts.mono_images += !h->clock;
    f->counts.rings = rings;
    f->counts.ring_bytes = h->ring_bytes;
    *vec_push(&f->images) = i;
}

static void scan(struct ring_follow *f)
{
    DIR *d = opendir(f->dir);
    for (struct dirent *entry; d && (entry = readdir(d));)
        add_image(f, entry->d_name);
    if (d)
        closedir(d);
    f->scanned_ns = f->now_ns;
}

static void stop_writing(struct ring_follow *f, enum trace_stop why)
{
    if (!f->counts.stopped)
        f->counts.stopped = why;
}

/* A packet of which only a part could be written is taken back. */
static void write_failed(struct ring_follow *f, const struct followed_ring *r, int bad)
{
    if (r->stream >= 0 && ftruncate(r->stream, (off_t)r->stream_bytes))
        bad = errno;
    if (bad == ENOSPC || bad == EDQUOT) {
        stop_writing(f, TRACE_NO_SPACE);
        return;
    }
    stop_writing(f, TRACE_BROKEN);
    f->bad = error_set(&f->error, bad, "cannot write the trace: %s", strerror(bad));
}

/* `clock` NULL: the times are in ns. */
static void write_piece(struct ring_follow *f, struct followed *i, uint32_t ring, struct ring_piece *p,
                        const struct tick_clock *clock)
{
    struct followed_ring *r = &i->rings[ring];
    const uint64_t lost = ring_losses_until(&r->losses, p);
    if (!f->counts.stopped)
        stop_writing(f, trace_budget_ask(&f->budget, ctf_writer_packet_bytes(p), f->now_ns));
    if (f->counts.stopped && f->counts.stopped != TRACE_TIME_IS_UP) {
        f->counts.unwritten += p->n_events;
        return;
    }
    if (r->stream < 0)
        r->stream = ctf_writer_stream(f->writer, i->image.pid, i->image.id, ring, &f->error);
    const int bad = r->stream < 0 ? r->stream
                                  : ctf_writer_packet(f->writer, r->stream, p, i->image.pid, i->image.id,
                                                      ring, lost, clock);
    if (bad == -EBADMSG) { /* what is no event was written by the program itself */
        f->counts.damaged++;
    } else if (bad) {
        write_failed(f, r, -bad);
        f->counts.unwritten += p->n_events;
    } else {
        const uint64_t bytes = ctf_writer_packet_bytes(p);
        r->number = p->number;
        r->lost = lost;
        r->stream_bytes += bytes;
        f->budget.used_bytes += bytes;
        f->counts.events += p->n_events;
    }
}

/* Returns the time, or number, that an event of the image would have now. */
static uint64_t time_of(const struct ring_follow *f, const struct followed *i)
{
    return event_times_now(i->image.reader, &f->clock, f->began_ns);
}

/* Writes what a piece has, or holds it until it can be judged. */
static void use_piece(struct ring_follow *f, struct followed *i, uint32_t ring, struct ring_piece *p)
{
    const struct tick_clock *clock = event_times_clock(i->image.reader, &f->clock);
    const int bad = user_classes_translate(f->user, i->user, p, f->writer, &f->counts.user, &f->error);
    if (bad) {
        write_failed(f, &i->rings[ring], -bad);
        f->counts.unwritten += p->n_events;
    } else if (!i->window) {
        write_piece(f, i, ring, p, clock);
    } else if (event_window_put(i->window, ring, p, clock, time_of(f, i))) {
        f->counts.damaged++;
    }
}

/* Writes what is kept of the events before a time. */
static void write_judged(struct ring_follow *f, struct followed *i, uint64_t until_ns)
{
    if (!i->window)
        return;
    event_window_judge(i->window, until_ns, f->span.first_ns);
    for (uint32_t ring = 0; ring < ring_reader_rings(i->image.reader); ring++)
        for (struct ring_piece *p; (p = event_window_take(i->window, ring));)
            write_piece(f, i, ring, p, NULL);
}

/* Adds the events up, in place of writing them. */
static void add_up(struct ring_follow *f, const struct followed *i, uint32_t ring, const struct ring_piece *p)
{
    const bool is_shared = ring + 1 == ring_reader_rings(i->image.reader);
    const struct ring_sums_source from = {.pid = i->image.pid,
                                          .image_id = i->image.id,
                                          .cpu = is_shared ? TRACE_EVENT_NO_CPU : ring,
                                          .user = i->user};
    f->counts.user.unknown += ring_sums_add(f->o.sums, &from, p);
    f->counts.events += p->n_events;
}

static void take(struct ring_follow *f, struct followed *i, uint32_t ring, struct ring_piece *p)
{
    struct followed_ring *r = &i->rings[ring];
    f->counts.overwritten += p->overwritten;
    if (!p->n_words)
        return;
    r->events += p->n_events;
    r->event_bytes += 8ull * p->n_words;
    event_times_add(&f->span, i->image.reader, p, &f->clock, f->now_ns);
    if (f->counts.stopped)
        f->counts.unwritten += p->n_events;
    else if (f->o.sums)
        add_up(f, i, ring, p);
    else
        use_piece(f, i, ring, p);
}

/* Reads an image once. Returns whether there was anything. */
static bool read_image(struct ring_follow *f, struct followed *i)
{
    bool any = false;
    struct ring_piece p;
    for (uint32_t ring = 0; ring < ring_reader_rings(i->image.reader); ring++) {
        uint64_t bytes = 0;
        for (int found; (found = ring_image_next(&i->image, ring, &p)) != 0; any = true)
            if (found > 0) {
                bytes += 8ull * p.n_words;
                take(f, i, ring, &p);
            } else {
                f->counts.damaged++;
            }
        ring_rate_add(&i->rings[ring].rate, bytes, f->now_ns, &f->counts.busiest_bytes_per_s);
    }
    return any;
}

static uint64_t lost_of(const struct followed *i, uint32_t ring, enum ring_loss why)
{
    return ring_losses_of(&i->rings[ring].losses, i->image.reader, ring, why);
}

static void count_losses(struct ring_follow *f, const struct followed *i)
{
    struct ring_follow_counts *n = &f->counts;
    for (uint32_t ring = 0; ring < ring_reader_rings(i->image.reader); ring++) {
        const struct followed_ring *r = &i->rings[ring];
        if (f->span.last_ns > f->span.first_ns) /* a short program may have ended before a span was over */
            ring_rate_raise(&n->busiest_bytes_per_s, r->event_bytes, f->span.last_ns - f->span.first_ns);
        const uint64_t full = lost_of(i, ring, RING_LOST_FULL);
        n->full += full;
        n->no_room += lost_of(i, ring, RING_LOST_NO_ROOM);
        n->no_ring += lost_of(i, ring, RING_LOST_NO_RING);
        n->filtered += lost_of(i, ring, RING_LOST_FILTERED);
        const uint64_t lacked = r->events ? full * r->event_bytes / r->events : 0;
        n->worst_lost_bytes = lacked > n->worst_lost_bytes ? lacked : n->worst_lost_bytes;
    }
}

/* Events that were lost behind the last packet of a ring are told by one more packet. */
static void write_losses(struct ring_follow *f, struct followed *i)
{
    for (uint32_t ring = 0; ring < ring_reader_rings(i->image.reader) && !f->counts.stopped; ring++) {
        struct followed_ring *r = &i->rings[ring];
        const uint64_t lost = ring_losses_all(&r->losses, i->image.reader, ring);
        if (lost <= r->lost)
            continue;
        if (r->stream < 0)
            r->stream = ctf_writer_stream(f->writer, i->image.pid, i->image.id, ring, &f->error);
        const int bad = r->stream < 0
                            ? r->stream
                            : ctf_writer_losses(f->writer, r->stream, i->image.pid, i->image.id, ring,
                                                r->number + 1, lost, clock_ns(CLOCK_MONOTONIC));
        if (bad)
            write_failed(f, r, -bad);
    }
}

static void release(struct ring_follow *f, struct followed *i, bool ended)
{
    if (clock_kind_interpolates(f->o.clock)) /* the last events were before now */
        write_judged(f, i, f->now_ns);
    write_judged(f, i, UINT64_MAX);
    if (f->writer && !clock_kind_has_numbers(f->o.clock))
        write_losses(f, i);
    count_losses(f, i);
    f->counts.filtered += i->window ? event_window_dropped(i->window) : 0;
    f->counts.ahead += i->window ? event_window_ahead(i->window) : 0;
    f->counts.ambiguous += i->window ? event_window_ambiguous(i->window) : 0;
    for (uint32_t ring = 0; ring < ring_reader_rings(i->image.reader); ring++)
        if (i->rings[ring].stream >= 0)
            close(i->rings[ring].stream);
    free(i->rings);
    event_window_free(i->window);
    user_events_free(i->user);
    if (ended)
        ring_image_remove(&i->image, f->dir);
    else
        ring_image_close(&i->image);
}

/* Of images that have ended, reads what is left, and releases them. `all`: asks each; else now and then. */
static void harvest(struct ring_follow *f, bool all)
{
    size_t kept = 0;
    vec_each (struct followed, i, &f->images) {
        const bool ask = all || f->now_ns - i->asked_ns >= ALIVE_NS;
        i->asked_ns = ask ? f->now_ns : i->asked_ns;
        if (!ask || !ring_image_has_ended(&i->image, f->dir)) {
            f->images.at[kept++] = *i;
            continue;
        }
        ring_reader_end(i->image.reader);
        read_image(f, i);
        if (f->o.only)
            *vec_push(&f->ended) = i->image.id;
        release(f, i, !f->o.only);
    }
    f->images.len = kept;
}

static bool read_all(struct ring_follow *f)
{
    bool any = false;
    vec_each (struct followed, i, &f->images) {
        i->round_ns = i->window ? time_of(f, i) : 0; /* events before it can be judged after the round */
        any |= read_image(f, i);
    }
    vec_each (struct followed, i, &f->images)
        if (i->window && (!ring_reader_waits(i->image.reader) || event_window_bytes(i->window) > HELD_BYTES))
            write_judged(f, i, i->round_ns);
    return any;
}

/* Sums must know what they lack. Of a damaged part that is one event at least. */
static void end_sums_round(struct ring_follow *f)
{
    if (!f->o.sums)
        return;
    uint64_t lost = ring_follow_lost(&f->counts) + f->counts.damaged + f->counts.user.unknown;
    vec_each (const struct followed, i, &f->images)
        for (uint32_t ring = 0; ring < ring_reader_rings(i->image.reader); ring++)
            lost += ring_losses_all(&i->rings[ring].losses, i->image.reader, ring);
    ring_sums_end_round(f->o.sums, lost);
}

/* One round. Returns whether there were events. */
static bool step(struct ring_follow *f, bool last)
{
    f->now_ns = clock_ns(CLOCK_MONOTONIC);
    if (f->now_ns - f->clock.last.ns >= tick_clock_wait_ns(&f->clock)) {
        tick_clock_add(&f->clock, tick_clock_anchor());
        ctf_writer_clocks(f->writer, f->counts.residual_ns, false);
    }
    if (last || f->now_ns - f->scanned_ns > RING_SCAN_NS)
        scan(f);
    if (!f->o.clock && f->counts.images > f->counts.mono_images)
        f->counts.residual_ns = f->clock.residual_ns;
    const bool any = read_all(f);
    harvest(f, last);
    if (f->o.duration_ns && f->now_ns - f->began_ns >= f->o.duration_ns)
        stop_writing(f, TRACE_TIME_IS_UP);
    end_sums_round(f);
    return any;
}

static void *follow(void *arg)
{
    struct ring_follow *f = arg;
    uint64_t wait = 0;
    bool last;
    do {
        last = atomic_load(&f->stop);
        wait = ring_rate_wait_ns(step(f, last) ? 0 : wait, f->counts.ring_bytes);
        wait = wait < tick_clock_wait_ns(&f->clock) ? wait : tick_clock_wait_ns(&f->clock);
        if (!last)
            nanosleep(&(struct timespec){.tv_nsec = (long)wait}, NULL);
    } while (!last);
    f->counts.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static void release_all(struct ring_follow *f)
{
    vec_release(&f->images);
    vec_release(&f->ended);
    ctf_writer_free(f->writer);
    user_classes_free(f->user);
    event_filter_free(f->filter);
    if (f->folder >= 0)
        close(f->folder);
    free(f->dir);
    free(f);
}

static int begin_folder(struct ring_follow *f, struct error *e)
{
    struct buf ust = BUF_INIT;
    f->folder = open(f->o.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bad = f->folder < 0 ? -errno : trace_budget_begin(&f->budget, f->folder, f->o.limit_bytes);
    if (bad)
        return error_set(e, -bad, "%s: %s", f->o.folder, strerror(-bad));
    buf_printf(&ust, "%s/ust", f->o.folder);
    uint32_t n;
    const struct event_class *classes = agent_events(&n);
    bad = ctf_writer_new_for(&f->writer, buf_str(&ust), &(struct ctf_about){"ust", f->o.where, f->o.clock},
                             classes, n, e);
    buf_release(&ust);
    return bad;
}

int ring_follow_begin(struct ring_follow **out, const struct ring_follow_options *o, struct error *e)
{
    struct ring_follow *f = mem_alloc(sizeof(*f));
    f->o = *o;
    f->folder = -1;
    f->dir = mem_strdup(o->dir);
    f->user = user_classes_new();
    const struct tick_anchor first = tick_clock_anchor();
    if (o->clock && !strcmp(o->clock, "counter"))
        f->counts.price = counter_price_measure();
    nanosleep(&(struct timespec){.tv_nsec = FIRST_ANCHORS_NS}, NULL);
    tick_clock_init(&f->clock, first, tick_clock_anchor());
    f->now_ns = f->began_ns = clock_ns(CLOCK_MONOTONIC);
    int bad = o->sums ? 0 : begin_folder(f, e);
    if (o->sums)
        ring_sums_set_ledgers(o->sums, o->dir);
    if (!bad && o->where)
        bad = event_filter_new(&f->filter, o->where, e);
    if (!bad && o->only)
        scan(f);
    const int failed = bad ? 0 : worker_thread_start(&f->thread, follow, f);
    if (failed)
        bad = error_set(e, failed, "cannot start a thread: %s", strerror(failed));
    if (bad)
        release_all(f);
    else
        *out = f;
    return bad;
}

int ring_follow_end(struct ring_follow *f, struct ring_follow_counts *out, struct error *e)
{
    if (!f)
        return 0;
    atomic_store(&f->stop, true);
    pthread_join(f->thread, NULL);
    for (; f->images.len; f->images.len--) /* of processes that run on */
        release(f, &f->images.at[f->images.len - 1], false);
    end_sums_round(f); /* adds what was held */
    f->counts.clock = f->o.clock;
    f->counts.has_filter = f->filter != NULL;
    const int bad = f->bad;
    f->counts.bytes = f->budget.used_bytes;
    f->counts.limit_bytes = f->budget.limit_bytes;
    f->counts.spare_bytes = f->budget.spare_bytes;
    f->counts.span_ns = f->span.last_ns - f->span.first_ns;
    ctf_writer_clocks(f->writer, f->counts.residual_ns, true);
    *out = f->counts;
    if (bad && e)
        *e = f->error;
    release_all(f);
    return bad;
}
