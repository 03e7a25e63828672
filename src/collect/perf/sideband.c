/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/perf/sideband.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "collect/perf/perf_open.h"
#include "collect/perf/perf_ring.h"

#define ONLINE           "/sys/devices/system/cpu/online"
#define RINGS_BYTES      (32u << 20) /* all CPUs together, within the limits of one ring */
#define RING_BYTES_LEAST (512u << 10)
#define RING_BYTES_MOST  (4u << 20)
#define WAKE_BYTES       (RING_BYTES_LEAST / 4)
#define CPU_CHECK_NS     1000000000u
#define CPUS_MAX         8192

struct ring {
    unsigned cpu;
    bool wanted; /* the CPU is in the list */
    int fd;
    struct perf_event_mmap_page *page;
    size_t bytes;               /* size of the part with records */
    uint64_t reported, counted; /* losses: by records; by the kernel's counter */
    uint64_t gaps;              /* losses that were reported as gaps */
    uint64_t last_record_ns;    /* no record up to this time is missing */
};

struct waiting {
    struct sideband_record record;
    uint64_t serial; /* keeps the order of records of one CPU with the same time */
    size_t text;     /* offset in `texts` + 1; 0: no text */
};

struct sideband {
    struct VEC(struct ring) rings;
    struct VEC(struct waiting) waiting;
    struct buf texts;
    size_t page_bytes, ring_bytes;
    char *online_path, *online; /* the list of CPUs: its file, its contents when last read */
    uint64_t checked_ns, serial;
    uint64_t lost, malformed; /* lost: in rings that are closed */
    int epoll;
    bool counts_lost;
};

/* ---- rings ---- */

/*
 * The event does not request build ids (.build_id). If one event requests them, the kernel leaves the flag
 * PERF_RECORD_MISC_MMAP_BUILD_ID set in the records of the same mapping for later events that do not request them (seen
 * with 6.18). The readers of those, such as perf record, then take the device numbers for a build id.
 */
static int open_event(const struct sideband *s, unsigned cpu)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TIME,
        .read_format = s->counts_lost ? PERF_FORMAT_LOST : 0,
        .mmap = 1,
        .mmap2 = 1,
        .mmap_data = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)(s->ring_bytes / 4 < WAKE_BYTES ? s->ring_bytes / 4 : WAKE_BYTES),
    };
    return perf_open(&attr, -1, cpu);
}

/* Opens an event that counts losses, if the kernel can (Linux 6.0 and later). */
static int open_best_event(struct sideband *s, unsigned cpu)
{
    int fd = open_event(s, cpu);
    if (fd == -EINVAL && s->counts_lost) {
        s->counts_lost = false;
        fd = open_event(s, cpu);
    }
    return fd;
}

static int open_ring(struct sideband *s, unsigned cpu)
{
    struct ring r = {
        .cpu = cpu, .wanted = true, .bytes = s->ring_bytes, .last_record_ns = clock_ns(CLOCK_MONOTONIC)};
    r.fd = open_best_event(s, cpu);
    if (r.fd < 0)
        return r.fd;
    r.page = mmap(NULL, s->page_bytes + r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = cpu};
    if (r.page == MAP_FAILED || epoll_ctl(s->epoll, EPOLL_CTL_ADD, r.fd, &e)) {
        int err = -errno;
        if (r.page != MAP_FAILED)
            munmap(r.page, s->page_bytes + r.bytes);
        close(r.fd);
        return err;
    }
    *vec_push(&s->rings) = r;
    return 0;
}

static void close_ring(struct sideband *s, struct ring *r)
{
    s->lost += r->gaps;
    munmap(r->page, s->page_bytes + r->bytes);
    close(r->fd); /* this also removes it from the epoll set */
    *r = s->rings.at[--s->rings.len];
}

/* ---- what is read ---- */

static void wait_for_turn(struct sideband *s, const struct sideband_record *record)
{
    struct waiting *w = vec_push(&s->waiting);
    *w = (struct waiting){.record = *record, .serial = s->serial++};
    if (!record->text[0])
        return;
    w->text = s->texts.len + 1;
    buf_add(&s->texts, record->text, strlen(record->text) + 1);
}

/* Returns the kernel's count of records that did not fit; 0 if it has none. Unlike PERF_RECORD_LOST, the count is up to
 * date even if nothing more is written. */
static uint64_t count_lost(const struct sideband *s, const struct ring *r)
{
    uint64_t values[2];
    if (!s->counts_lost || read(r->fd, values, sizeof(values)) != sizeof(values))
        return 0;
    return values[1];
}

static void note_gap(struct sideband *s, struct ring *r, uint64_t time_ns)
{
    uint64_t lost = r->reported > r->counted ? r->reported : r->counted;
    if (lost <= r->gaps)
        return;
    struct sideband_record gap = {.type = SIDEBAND_GAP,
                                  .time_ns = time_ns,
                                  .since_ns = r->last_record_ns,
                                  .lost = lost - r->gaps,
                                  .text = ""};
    r->gaps = lost;
    wait_for_turn(s, &gap);
}

static void take_record(struct sideband *s, struct ring *r, const void *data, size_t bytes)
{
    struct sideband_record record;
    if (!sideband_record_parse(data, bytes, &record)) {
        s->malformed++;
        return;
    }
    if (record.type == SIDEBAND_GAP) {
        r->reported += record.lost;
        note_gap(s, r, record.time_ns);
    } else {
        wait_for_turn(s, &record);
    }
    r->last_record_ns = record.time_ns;
}

/* The arguments of take_record() for the records of one ring. */
struct reading {
    struct sideband *s;
    struct ring *r;
};

static void take_one(void *arg, const struct perf_event_header *record)
{
    const struct reading *of = arg;
    take_record(of->s, of->r, record, record->size);
}

static void read_ring(struct sideband *s, struct ring *r, uint64_t until_ns)
{
    const struct perf_ring ring = {r->page, s->page_bytes, r->bytes};
    struct reading of = {s, r};
    uint64_t tail;
    s->malformed += !perf_ring_read(&ring, &tail, take_one, &of);
    /* The count is read before the ring has room again: records that are lost later belong to the next gap. */
    r->counted = count_lost(s, r);
    perf_ring_release(&ring, tail);
    note_gap(s, r, until_ns);
}

/* ---- CPUs ---- */

static char *read_list(const char *path)
{
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    return len > 0 ? mem_strndup(text, (size_t)len) : NULL;
}

static struct ring *ring_of(struct sideband *s, unsigned cpu)
{
    vec_each (struct ring, r, &s->rings)
        if (r->cpu == cpu)
            return r;
    return NULL;
}

/* Opens a ring for each CPU in the list. ENODEV is ignored: the CPU is offline by now, and the next list will not have
 * it. */
static int want_cpus(struct sideband *s, const char *list)
{
    int bad = 0;
    for (char *end; !bad && *list >= '0' && *list <= '9'; list = *end == ',' ? end + 1 : end) {
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (; !bad && first <= last && first < CPUS_MAX; first++) {
            struct ring *r = ring_of(s, (unsigned)first);
            if (r)
                r->wanted = true;
            else
                bad = open_ring(s, (unsigned)first);
            bad = bad == -ENODEV ? 0 : bad;
        }
    }
    return bad;
}

/* Opens and closes rings as CPUs come and go. Records of a new CPU were missed since the last check: this is a gap. */
static void follow_cpus(struct sideband *s, uint64_t now)
{
    char *list = now - s->checked_ns < CPU_CHECK_NS ? NULL : read_list(s->online_path);
    if (!list)
        return;
    if (strcmp(list, s->online) != 0) {
        size_t had = s->rings.len;
        vec_each (struct ring, r, &s->rings)
            r->wanted = false;
        want_cpus(s, list);
        bool came = s->rings.len > had;
        for (size_t i = s->rings.len; i-- > 0;)
            if (!s->rings.at[i].wanted) {
                read_ring(s, &s->rings.at[i], now);
                close_ring(s, &s->rings.at[i]);
            }
        if (came)
            wait_for_turn(s, &(struct sideband_record){.type = SIDEBAND_GAP,
                                                       .time_ns = clock_ns(CLOCK_MONOTONIC),
                                                       .since_ns = s->checked_ns,
                                                       .text = ""});
        char *old = s->online;
        s->online = list;
        list = old;
    }
    free(list);
    s->checked_ns = now;
}

/* ---- the public side ---- */

static int complain(struct error *why, int err)
{
    if (err == -EACCES || err == -EPERM)
        return error_set(why, -err,
                         "address spaces cannot be followed: perf events of all processes require "
                         "CAP_PERFMON, or kernel.perf_event_paranoid below 1; run as root");
    return error_set(why, -err, "address spaces cannot be followed: perf_event_open: %s", strerror(-err));
}

/*
 * Returns the size of a ring. A thousand programs that live for a millisecond each leave some 17,000 records of 100
 * bytes. If there are few CPUs, so many fit, because the reader may have to wait for a disk or for a CPU.
 */
static size_t usual_ring_bytes(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t bytes = RING_BYTES_MOST;
    while (bytes > RING_BYTES_LEAST && bytes * (size_t)(cpus > 0 ? cpus : 1) > RINGS_BYTES)
        bytes /= 2;
    return bytes;
}

/* Opens rings for all CPUs; smaller ones if we may not lock so much memory (without CAP_IPC_LOCK). */
static int open_rings(struct sideband *s, bool may_shrink)
{
    int bad = want_cpus(s, s->online);
    while (may_shrink && (bad == -EPERM || bad == -ENOMEM) && s->ring_bytes > RING_BYTES_LEAST) {
        while (s->rings.len)
            close_ring(s, &s->rings.at[0]);
        s->ring_bytes /= 2;
        bad = want_cpus(s, s->online);
    }
    return bad;
}

int sideband_open(const struct sideband_options *options, struct sideband **out, struct error *why)
{
    static const struct sideband_options usual;
    const struct sideband_options *o = options ? options : &usual;
    struct sideband *s = mem_alloc(sizeof(*s));
    size_t pages = 1;
    while (pages < o->ring_pages)
        pages *= 2;
    s->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    s->ring_bytes = o->ring_pages ? pages * s->page_bytes : usual_ring_bytes();
    s->counts_lost = true;
    s->online_path = mem_strdup(o->online_path ? o->online_path : ONLINE);
    s->checked_ns = clock_ns(CLOCK_MONOTONIC);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    int bad = s->epoll < 0 ? -errno : 0;
    s->online = read_list(s->online_path);
    if (!bad)
        bad = s->online ? open_rings(s, !o->ring_pages) : -ENOENT;
    if (!bad && !s->rings.len)
        bad = -ENODEV;
    if (bad) {
        sideband_close(s);
        return complain(why, bad);
    }
    *out = s;
    return 0;
}

void sideband_close(struct sideband *s)
{
    if (!s)
        return;
    while (s->rings.len)
        close_ring(s, &s->rings.at[0]);
    vec_release(&s->rings);
    vec_release(&s->waiting);
    buf_release(&s->texts);
    if (s->epoll >= 0)
        close(s->epoll);
    free(s->online_path);
    free(s->online);
    free(s);
}

int sideband_fd(const struct sideband *s)
{
    return s->epoll;
}

static int by_time(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;
    if (x->record.time_ns != y->record.time_ns)
        return x->record.time_ns < y->record.time_ns ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* Keeps the records of events after the drain began: older records may still come from another CPU. */
static void keep_rest(struct sideband *s, size_t from)
{
    struct buf texts = BUF_INIT;
    for (size_t i = from; i < s->waiting.len; i++) {
        struct waiting *w = &s->waiting.at[i - from];
        *w = s->waiting.at[i];
        if (!w->text)
            continue;
        const char *text = s->texts.data + w->text - 1;
        w->text = texts.len + 1;
        buf_add(&texts, text, strlen(text) + 1);
    }
    s->waiting.len -= from;
    buf_release(&s->texts);
    s->texts = texts;
}

void sideband_drain(struct sideband *s, sideband_fn *take, void *arg)
{
    uint64_t until = clock_ns(CLOCK_MONOTONIC);
    size_t i = 0;
    follow_cpus(s, until);
    vec_each (struct ring, r, &s->rings)
        read_ring(s, r, until);
    if (s->waiting.len)
        qsort(s->waiting.at, s->waiting.len, sizeof(*s->waiting.at), by_time);
    for (; i < s->waiting.len && s->waiting.at[i].record.time_ns <= until; i++) {
        struct waiting *w = &s->waiting.at[i];
        w->record.text = w->text ? s->texts.data + w->text - 1 : "";
        take(arg, &w->record);
    }
    keep_rest(s, i);
}

uint64_t sideband_lost(const struct sideband *s)
{
    uint64_t lost = s->lost;
    vec_each (struct ring, r, &s->rings)
        lost += r->gaps;
    return lost;
}

uint64_t sideband_malformed(const struct sideband *s)
{
    return s->malformed;
}
