/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/ring_follow.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/ctf_writer.h"
#include "collect/trace/ring_image.h"
#include "collect/trace/user_classes.h"

#define WAIT_LEAST_NS 1000000u
#define WAIT_MOST_NS  50000000u
#define SCAN_NS       20000000u

struct followed {
    struct ring_image image;
    int *streams; /* by ring; -1: nothing was written yet */
    struct user_events *user;
};

struct ring_follow {
    char *dir;
    pthread_t thread;
    atomic_bool stop;
    struct ctf_writer *writer;
    struct user_classes *user;
    struct tick_clock clock;
    uint64_t scanned_ns;
    struct VEC(struct followed) images;
    struct ring_follow_counts counts;
    int bad;
    struct error error;
};

static bool is_known(const struct ring_follow *f, uint64_t id)
{
    vec_each (const struct followed, i, &f->images)
        if (i->image.id == id)
            return true;
    return false;
}

static void add_image(struct ring_follow *f, const char *name)
{
    struct followed i = {.streams = NULL};
    pid_t pid;
    uint64_t id;
    if (!ring_image_name(name, &pid, &id) || is_known(f, id) || ring_image_open(&i.image, f->dir, name))
        return;
    const uint32_t rings = ring_reader_rings(i.image.reader);
    i.streams = mem_array(rings, sizeof(*i.streams));
    for (uint32_t ring = 0; ring < rings; ring++)
        i.streams[ring] = -1;
    i.user = user_events_new(f->dir, i.image.pid, i.image.id);
    *vec_push(&f->images) = i;
}

static void scan(struct ring_follow *f)
{
    DIR *d = opendir(f->dir);
    for (struct dirent *entry; d && (entry = readdir(d));)
        add_image(f, entry->d_name);
    if (d)
        closedir(d);
}

static int take(struct ring_follow *f, struct followed *i, uint32_t ring, struct ring_piece *p)
{
    const struct tick_clock *clock = ring_reader_header(i->image.reader)->clock ? &f->clock : NULL;
    uint64_t lost = 0;
    for (int k = 0; k < RING_LOSSES; k++)
        lost += p->lost[k];
    if (i->streams[ring] < 0)
        i->streams[ring] = ctf_writer_stream(f->writer, i->image.pid, i->image.id, ring, &f->error);
    if (i->streams[ring] < 0)
        return i->streams[ring];
    int bad = user_classes_translate(f->user, i->user, p, f->writer, &f->counts.user, &f->error);
    if (bad)
        return bad;
    bad = p->n_words ? ctf_writer_packet(f->writer, i->streams[ring], p, i->image.pid, i->image.id, ring,
                                         lost, clock)
                     : 0;
    f->counts.events += p->n_events;
    f->counts.bytes += 8ull * p->n_words;
    return bad == -EBADMSG || !bad /* what is no event was written by the program itself */
               ? 0
               : error_set(&f->error, -bad, "cannot write the trace: %s", strerror(-bad));
}

/* Reads all images once. Returns whether there was anything. */
static bool read_all(struct ring_follow *f)
{
    bool any = false;
    struct ring_piece p;
    vec_each (struct followed, i, &f->images)
        for (uint32_t ring = 0; ring < ring_reader_rings(i->image.reader); ring++)
            for (int found; !f->bad && (found = ring_image_next(&i->image, ring, &p)) != 0; any = true)
                if (found > 0)
                    f->bad = take(f, i, ring, &p);
    return any;
}

static void wait_for(uint64_t ns)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static void *follow(void *arg)
{
    struct ring_follow *f = arg;
    uint64_t wait = WAIT_LEAST_NS;
    bool last;
    do {
        last = atomic_load(&f->stop);
        const uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (now - f->clock.last.ns >= tick_clock_wait_ns(&f->clock))
            tick_clock_add(&f->clock, tick_clock_anchor());
        if (last || now - f->scanned_ns > SCAN_NS) {
            scan(f);
            f->scanned_ns = now;
        }
        const bool any = read_all(f);
        wait = any ? WAIT_LEAST_NS : wait * 2 < WAIT_MOST_NS ? wait * 2 : WAIT_MOST_NS;
        if (wait > tick_clock_wait_ns(&f->clock))
            wait = tick_clock_wait_ns(&f->clock);
        if (!last)
            wait_for(wait);
    } while (!last);
    return NULL;
}

int ring_follow_begin(struct ring_follow **out, const char *dir, const char *folder, struct error *e)
{
    struct ring_follow *f = mem_alloc(sizeof(*f));
    f->dir = mem_strdup(dir);
    f->user = user_classes_new();
    const struct tick_anchor first = tick_clock_anchor();
    wait_for(10 * WAIT_LEAST_NS);
    tick_clock_init(&f->clock, first, tick_clock_anchor());
    uint32_t n;
    const struct event_class *classes = agent_events(&n);
    int bad = ctf_writer_new(&f->writer, folder, "ust", classes, n, e);
    const int failed = bad ? 0 : pthread_create(&f->thread, NULL, follow, f);
    if (failed)
        bad = error_set(e, failed, "cannot start a thread: %s", strerror(failed));
    if (bad) {
        ctf_writer_free(f->writer);
        user_classes_free(f->user);
        free(f->dir);
        free(f);
        return bad;
    }
    *out = f;
    return 0;
}

int ring_follow_end(struct ring_follow *f, struct ring_follow_counts *out, struct error *e)
{
    if (!f)
        return 0;
    atomic_store(&f->stop, true);
    pthread_join(f->thread, NULL);
    const int bad = f->bad;
    f->counts.images = f->images.len;
    vec_each (struct followed, i, &f->images) {
        f->counts.lost += ring_image_lost(&i->image);
        for (uint32_t ring = 0; ring < ring_reader_rings(i->image.reader); ring++)
            if (i->streams[ring] >= 0)
                close(i->streams[ring]);
        free(i->streams);
        user_events_free(i->user);
        ring_image_remove(&i->image, f->dir);
    }
    *out = f->counts;
    if (bad)
        *e = f->error;
    vec_release(&f->images);
    ctf_writer_free(f->writer);
    user_classes_free(f->user);
    free(f->dir);
    free(f);
    return bad;
}
