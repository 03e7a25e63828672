/* SPDX-License-Identifier: BSD-2-Clause */
/* Sinks of perf: a counter, as `perf stat` has it, and records in a ring, as `perf record` has them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "bench/kernel/kernel_event.h"
#include "bench/kernel/kernel_sinks.h"
#include "collect/perf/perf_ring.h"

#define RING_BYTES (4u << 20)
/* What `perf record` asks of a tracepoint. */
#define RECORD_FIELDS                                                                                        \
    (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |            \
     PERF_SAMPLE_RAW)

/* An event belongs to one thread. */
struct perf_part {
    int fd;
    struct perf_ring ring; /* none: it only counts */
};

struct perf_sink {
    struct VEC(struct perf_part) parts;
    uint64_t counted; /* until the previous read */
};

static int open_part(struct kernel_probe *p, pid_t tid, const struct perf_event_attr *attr, struct error *e)
{
    struct perf_sink *s = p->own;
    struct kernel_probe_target target = p->target;
    struct perf_event_attr own = *attr;
    target.pid = tid;
    const int fd = kernel_event_open(&target, &own, e);
    if (fd < 0)
        return fd;
    struct perf_part *part = vec_push(&s->parts);
    *part = (struct perf_part){.fd = fd};
    if (!attr->sample_type)
        return 0;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, page + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return error_set(e, errno, "a ring of %u MiB for perf: %s", RING_BYTES >> 20, strerror(errno));
    part->ring = (struct perf_ring){.page = at, .page_bytes = page, .bytes = RING_BYTES};
    return 0;
}

static int open_parts(struct kernel_probe *p, const struct perf_event_attr *attr, struct error *e)
{
    struct kernel_threads threads = {0};
    p->own = mem_alloc(sizeof(struct perf_sink));
    int bad = kernel_threads_read(&threads, p->target.pid, e);
    vec_each (const pid_t, tid, &threads.ids)
        if (!bad)
            bad = open_part(p, *tid, attr, e);
    vec_release(&threads.ids);
    if (bad)
        perf_sink_close(p);
    return bad;
}

int perf_count_open(struct kernel_probe *p, struct error *e)
{
    return open_parts(p, &(struct perf_event_attr){0}, e);
}

int perf_record_open(struct kernel_probe *p, struct error *e)
{
    return open_parts(
        p,
        &(struct perf_event_attr){
            .sample_period = 1,
            .sample_type = RECORD_FIELDS,
            .watermark = 1,
            .wakeup_watermark = RING_BYTES, /* nobody is woken: the ring is read between the turns */
        },
        e);
}

int perf_count_read(struct kernel_probe *p, struct kernel_probe_counts *out)
{
    struct perf_sink *s = p->own;
    uint64_t now = 0, of_part;
    vec_each (const struct perf_part, part, &s->parts) {
        if (read(part->fd, &of_part, sizeof(of_part)) != sizeof(of_part))
            return -errno;
        now += of_part;
    }
    out->seen += now - s->counted;
    s->counted = now;
    return 0;
}

static void take(void *arg, const struct perf_event_header *record)
{
    struct kernel_probe_counts *out = arg;
    if (record->type == PERF_RECORD_SAMPLE) {
        out->seen++;
        out->bytes += record->size;
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
    bool is_whole = true;
    vec_each (const struct perf_part, part, &s->parts) {
        uint64_t tail;
        is_whole = perf_ring_read(&part->ring, &tail, take, out) && is_whole;
        perf_ring_release(&part->ring, tail);
    }
    return is_whole ? 0 : -EIO;
}

uint64_t perf_record_memory(const struct kernel_probe *p)
{
    const struct perf_sink *s = p->own;
    uint64_t bytes = 0;
    vec_each (const struct perf_part, part, &s->parts)
        bytes += part->ring.page_bytes + part->ring.bytes;
    return bytes;
}

void perf_sink_close(struct kernel_probe *p)
{
    struct perf_sink *s = p->own;
    vec_each (const struct perf_part, part, &s->parts) {
        if (part->ring.page)
            munmap(part->ring.page, part->ring.page_bytes + part->ring.bytes);
        close(part->fd);
    }
    vec_release(&s->parts);
    free(s);
}
