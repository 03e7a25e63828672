/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/kernel_follow.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/trace/ctf_writer.h"
#include "collect/trace/kernel_event_classes.h"
#include "sys/probe/probe_list.h"
#include "sys/tools/kernel_events.h"
#include "run/sum/ring_sums.h"
#include "run/worker_thread.h"

#define WAIT_LEAST_NS 1000000u
#define WAIT_MOST_NS  20000000u

/* The file of a ring. */
struct stream {
    int fd;                /* -1: nothing was written yet */
    uint64_t number, lost; /* of the last packet */
};

struct kernel_follow {
    pthread_t thread;
    bool is_started, reads;
    atomic_bool stop;
    uint32_t groups;
    const struct probe_list *probes;
    struct kernel_events *kernel;
    struct ring_reader *reader;
    struct ctf_writer *writer;
    struct ring_sums *sums; /* borrowed; NULL: events are written */
    struct stream *streams; /* by ring */
    struct kernel_follow_counts counts;
    int bad;
    struct error error;
};

const char *kernel_follow_group_names(void)
{
#define G(name, doc) ", " #name
    return &(KERNEL_EVENT_GROUPS(G))[2]; /* without the first comma */
#undef G
}

uint32_t kernel_follow_groups(const char *list, const char **bad)
{
    return kernel_event_groups(list, bad);
}

int kernel_follow_check(struct error *e)
{
    return kernel_events_check(e);
}

static uint32_t cpu_of(const struct kernel_follow *f, uint32_t ring)
{
    return kernel_rings_cpu(ring, kernel_events_rings(f->kernel)->rings);
}

/* Opens the file of a ring, unless it is open. Returns 0, or -errno with a line. */
static int open_stream(struct kernel_follow *f, uint32_t ring)
{
    struct stream *s = &f->streams[ring];
    if (s->fd < 0)
        s->fd = ctf_writer_stream(f->writer, 0, 0, ring, &f->error);
    return s->fd < 0 ? s->fd : 0;
}

static int take(struct kernel_follow *f, uint32_t ring, const struct ring_piece *p)
{
    struct stream *s = &f->streams[ring];
    if (f->sums) {
        ring_sums_add(f->sums, &(struct ring_sums_source){.cpu = cpu_of(f, ring)}, p);
        f->counts.events += p->n_events;
        return 0;
    }
    int bad = p->n_words ? open_stream(f, ring) : 0;
    if (bad || !p->n_words)
        return bad;
    s->number = p->number;
    s->lost = 0;
    for (int k = 0; k < RING_LOSSES; k++)
        s->lost += p->lost[k];
    bad = ctf_writer_packet(f->writer, s->fd, p, 0, 0, cpu_of(f, ring), s->lost, NULL);
    f->counts.events += p->n_events;
    f->counts.bytes += 8ull * p->n_words;
    return bad ? error_set(&f->error, -bad, "cannot write the trace: %s", strerror(-bad)) : 0;
}

static uint64_t lost_of(const struct kernel_follow *f, uint32_t ring)
{
    uint64_t lost = 0;
    for (int why = 0; why < RING_LOSSES; why++)
        lost += ring_reader_lost(f->reader, ring, (enum ring_loss)why);
    return lost;
}

/* Writes what each ring has lost behind its last packet. */
static int write_losses(struct kernel_follow *f)
{
    int bad = 0;
    for (uint32_t ring = 0; !bad && ring < ring_reader_rings(f->reader); ring++) {
        const struct stream *s = &f->streams[ring];
        const uint64_t lost = lost_of(f, ring);
        if (lost <= s->lost)
            continue;
        bad = open_stream(f, ring);
        if (!bad && (bad = ctf_writer_losses(f->writer, s->fd, 0, 0, cpu_of(f, ring), s->number + 1, lost,
                                             clock_ns(CLOCK_MONOTONIC))))
            error_set(&f->error, -bad, "cannot write the trace: %s", strerror(-bad));
    }
    return bad;
}

static void end_sums_round(struct kernel_follow *f)
{
    if (!f->sums)
        return;
    uint64_t lost = f->counts.damaged; /* of a damaged part, one event at least */
    for (uint32_t ring = 0; ring < ring_reader_rings(f->reader); ring++)
        lost += lost_of(f, ring);
    ring_sums_end_round(f->sums, lost);
}

/* Reads all rings once. Returns whether there was anything. */
static bool read_all(struct kernel_follow *f)
{
    const struct kernel_rings *rings = kernel_events_rings(f->kernel);
    bool any = false;
    struct ring_piece p;
    for (uint32_t ring = 0; ring < rings->rings; ring++)
        for (int found; !f->bad && (found = ring_reader_next(f->reader, ring, &p)) != 0; any = true) {
            kernel_rings_took(rings, kernel_events_array(f->kernel), ring,
                              ring_reader_position(f->reader, ring));
            if (found > 0)
                f->bad = take(f, ring, &p);
            else
                f->counts.damaged++;
        }
    end_sums_round(f);
    return any;
}

static void *follow(void *arg)
{
    struct kernel_follow *f = arg;
    uint64_t wait = WAIT_LEAST_NS;
    while (!atomic_load(&f->stop)) {
        wait = read_all(f) ? WAIT_LEAST_NS : wait * 2 < WAIT_MOST_NS ? wait * 2 : WAIT_MOST_NS;
        nanosleep(&(struct timespec){.tv_nsec = (long)wait}, NULL);
    }
    return NULL;
}

static void release(struct kernel_follow *f)
{
    for (uint32_t ring = 0; f->reader && ring < ring_reader_rings(f->reader); ring++)
        if (f->streams[ring].fd >= 0)
            close(f->streams[ring].fd);
    free(f->streams);
    ring_reader_free(f->reader);
    ctf_writer_free(f->writer);
    kernel_events_close(f->kernel);
    free(f);
}

/* The metadata describe the events of the recorded groups alone: so a reader knows that an event did not happen, and
 * not only that the trace has none. */
struct event_class *kernel_follow_classes(const struct kernel_follow *f, uint32_t *n)
{
    uint32_t of_probes;
    const struct event_class *more = probe_list_classes(f->probes, &of_probes);
    struct event_class *classes = kernel_event_classes_of(f->groups, n);
    struct event_class *all = mem_array(*n + of_probes, sizeof(*all));
    memcpy(all, classes, *n * sizeof(*all));
    for (uint32_t i = 0; i < of_probes; i++)
        all[(*n)++] = more[i];
    free(classes);
    return all;
}

/* What is read into, and written to. */
static int make_reader(struct kernel_follow *f, const char *folder, struct error *e)
{
    const struct kernel_rings *rings = kernel_events_rings(f->kernel);
    uint32_t n;
    f->reader = ring_reader_new(kernel_events_array(f->kernel), rings->mapped_bytes);
    if (!f->reader)
        return error_set(e, EINVAL, "cannot read the kernel's rings: their layout is unknown");
    f->streams = mem_array(ring_reader_rings(f->reader), sizeof(*f->streams));
    for (uint32_t ring = 0; ring < ring_reader_rings(f->reader); ring++)
        f->streams[ring].fd = -1;
    struct event_class *classes = kernel_follow_classes(f, &n);
    const int bad = !folder ? 0 : ctf_writer_new(&f->writer, folder, "kernel", classes, n, e);
    for (uint32_t i = 0; f->sums && i < n; i++)
        ring_sums_add_class(f->sums, &classes[i]);
    free(classes);
    return bad;
}

int kernel_follow_begin(struct kernel_follow **out, const struct kernel_follow_options *o, struct error *e)
{
    struct kernel_follow *f = mem_alloc(sizeof(*f));
    f->groups = o->groups;
    f->probes = o->probes;
    const struct kernel_events_options options = {.groups = o->groups,
                                                  .ring_bytes = o->ring_bytes,
                                                  .overwrites = o->overwrites,
                                                  .probes = o->probes,
                                                  .pid = o->pid};
    const int bad = kernel_events_open(&f->kernel, &options, e);
    if (bad)
        release(f);
    else
        *out = f;
    return bad;
}

void kernel_follow_price(const struct kernel_follow *f, struct buf *b)
{
    kernel_events_price(f->kernel, b);
}

int kernel_follow_start(struct kernel_follow *f, const char *folder, struct error *e)
{
    const bool reads = folder || f->sums;
    const int bad = make_reader(f, folder, e);
    const int failed = bad || !reads ? 0 : worker_thread_start(&f->thread, follow, f);
    f->is_started = !bad && !failed;
    f->reads = f->is_started && reads;
    return failed ? error_set(e, failed, "cannot start a thread: %s", strerror(failed)) : bad;
}

int kernel_follow_start_sums(struct kernel_follow *f, struct ring_sums *sums, struct error *e)
{
    f->sums = sums;
    return kernel_follow_start(f, NULL, e);
}

void *kernel_follow_rings(struct kernel_follow *f, size_t *bytes)
{
    *bytes = kernel_events_rings(f->kernel)->mapped_bytes;
    return kernel_events_array(f->kernel);
}

int kernel_follow_end(struct kernel_follow *f, struct kernel_follow_counts *out, struct error *e)
{
    if (!f)
        return 0;
    if (!f->is_started) {
        release(f);
        return 0;
    }
    atomic_store(&f->stop, true);
    if (f->reads)
        pthread_join(f->thread, NULL);
    kernel_events_stop(f->kernel);
    if (f->reads)
        read_all(f);
    if (f->writer && f->reads && !f->bad)
        f->bad = write_losses(f);
    if (f->writer)
        ctf_writer_clocks(f->writer, 0, true);
    const int bad = f->bad;
    for (uint32_t ring = 0; ring < ring_reader_rings(f->reader); ring++)
        f->counts.lost += lost_of(f, ring);
    f->counts.missed = kernel_events_missed(f->kernel);
    f->counts.counted = kernel_events_counted(f->kernel);
    *out = f->counts;
    if (bad && e)
        *e = f->error;
    release(f);
    return bad;
}
