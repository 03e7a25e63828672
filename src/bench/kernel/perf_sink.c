/* SPDX-License-Identifier: BSD-2-Clause */
/* Sinks of perf: a counter, as `perf stat` has it, and records in a ring, as `perf record` has them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "bench/kernel/kernel_event.h"
#include "bench/kernel/kernel_sinks.h"
#include "collect/perf/perf_ring.h"

#define RING_BYTES (4u << 20)
/* What `perf record` asks of a tracepoint. */
#define RECORD_FIELDS                                                                                        \
    (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |            \
     PERF_SAMPLE_RAW)

struct perf_sink {
    int fd;
    uint64_t counted; /* until the previous read */
    struct perf_ring ring;
};

static int open_event(struct kernel_probe *p, struct perf_event_attr *attr, struct error *e)
{
    struct perf_sink *s = mem_alloc(sizeof(*s));
    s->fd = kernel_event_open(&p->target, attr, e);
    p->own = s;
    const int bad = s->fd < 0 ? s->fd : 0;
    if (bad)
        perf_sink_close(p);
    return bad;
}

int perf_count_open(struct kernel_probe *p, struct error *e)
{
    return open_event(p, &(struct perf_event_attr){0}, e);
}

int perf_count_read(struct kernel_probe *p, struct kernel_probe_counts *out)
{
    struct perf_sink *s = p->own;
    uint64_t now;
    if (read(s->fd, &now, sizeof(now)) != sizeof(now))
        return -errno;
    out->seen += now - s->counted;
    s->counted = now;
    return 0;
}

int perf_record_open(struct kernel_probe *p, struct error *e)
{
    struct perf_event_attr attr = {
        .sample_period = 1,
        .sample_type = RECORD_FIELDS,
        .watermark = 1,
        .wakeup_watermark = RING_BYTES, /* nobody is woken: the ring is read between the turns */
    };
    int bad = open_event(p, &attr, e);
    if (bad)
        return bad;
    struct perf_sink *s = p->own;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, page + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (at == MAP_FAILED) {
        bad = error_set(e, errno, "a ring of %u MiB for perf: %s", RING_BYTES >> 20, strerror(errno));
        perf_sink_close(p);
        return bad;
    }
    s->ring = (struct perf_ring){.page = at, .page_bytes = page, .bytes = RING_BYTES};
    return 0;
}

static void take(void *arg, const struct perf_event_header *record)
{
    struct kernel_probe_counts *out = arg;
    if (record->type == PERF_RECORD_SAMPLE) {
        out->seen++;
    } else if (record->type == PERF_RECORD_LOST) {
        uint64_t id_lost[2] = {0};
        if (record->size >= sizeof(*record) + sizeof(id_lost))
            memcpy(id_lost, record + 1, sizeof(id_lost));
        out->lost += id_lost[1];
    }
}

int perf_record_read(struct kernel_probe *p, struct kernel_probe_counts *out)
{
    struct perf_sink *s = p->own;
    uint64_t tail;
    const bool is_whole = perf_ring_read(&s->ring, &tail, take, out);
    perf_ring_release(&s->ring, tail);
    return is_whole ? 0 : -EIO;
}

void perf_sink_close(struct kernel_probe *p)
{
    struct perf_sink *s = p->own;
    if (s->ring.page)
        munmap(s->ring.page, s->ring.page_bytes + s->ring.bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}
