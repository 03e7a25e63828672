/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/perf/page_faults.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "collect/perf/perf_open.h"
#include "collect/perf/perf_ring.h"

#define RING_BYTES_MOST  (4u << 20) /* 80,000 faults */
#define RING_BYTES_LEAST (64u << 10)
#define CPUS_MAX         8192
#define ROUNDS_MOST      100 /* searches for new threads: threads may create others all the time */

enum { MINOR, MAJOR, KINDS };

/* A sample as the kernel writes it for the `sample_type` in open_event(). */
struct sample {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t time, address, id;
};

struct lost {
    struct perf_event_header header;
    uint64_t id, lost;
};

struct cpu {
    int number, fd; /* of the event that has the ring; -1: none yet */
    struct perf_ring ring;
    struct sample last; /* the last sample that was reported */
    uint64_t reported_lost;
};

struct page_faults {
    pid_t pid;
    struct VEC(struct cpu) cpus;
    struct VEC(struct pollfd) polled; /* one for each ring */
    struct VEC(int) fds;
    struct map kinds, tids; /* id of an event -> its kind; the threads that have events */
    size_t page_bytes, ring_bytes;
    bool user_alone, counts_lost;
    page_faults_fn *take;
    void *arg;
    struct cpu *reading;
};

/* ---- events ---- */

static int open_event(const struct page_faults *f, pid_t tid, int cpu, int kind)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = kind == MAJOR ? PERF_COUNT_SW_PAGE_FAULTS_MAJ : PERF_COUNT_SW_PAGE_FAULTS_MIN,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID,
        .read_format = f->counts_lost ? PERF_FORMAT_LOST : 0,
        .inherit = 1,
        .inherit_thread = 1,
        .exclude_kernel = f->user_alone,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)(f->ring_bytes / 4),
    };
    return perf_open(&attr, tid, cpu);
}

/* Opens an event. The first one decides whether the kernel counts losses (Linux 6.0 and later), and whether we may see
 * faults in kernel code. */
static int open_best_event(struct page_faults *f, pid_t tid, int cpu, int kind)
{
    int fd = open_event(f, tid, cpu, kind);
    if (fd == -EINVAL && f->counts_lost && !f->fds.len) {
        f->counts_lost = false;
        fd = open_event(f, tid, cpu, kind);
    }
    if (fd == -EACCES && !f->user_alone && !f->fds.len) {
        f->user_alone = true;
        fd = open_event(f, tid, cpu, kind);
    }
    return fd;
}

/* Maps the ring of a CPU, at its first event. Without CAP_IPC_LOCK the memory for rings is limited, so smaller rings
 * are tried, too. */
static int map_ring(struct page_faults *f, struct cpu *c, int fd)
{
    void *page = MAP_FAILED;
    for (; f->ring_bytes >= RING_BYTES_LEAST; f->ring_bytes /= 2) {
        page = mmap(NULL, f->page_bytes + f->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page != MAP_FAILED || (errno != EPERM && errno != ENOMEM))
            break;
    }
    if (page == MAP_FAILED)
        return -errno;
    c->fd = fd;
    c->ring = (struct perf_ring){page, f->page_bytes, f->ring_bytes};
    *vec_push(&f->polled) = (struct pollfd){.fd = fd, .events = POLLIN};
    return 0;
}

static int add_event(struct page_faults *f, pid_t tid, struct cpu *c, int kind)
{
    uint64_t id;
    int fd = open_best_event(f, tid, c->number, kind);
    if (fd < 0)
        return fd;
    *vec_push(&f->fds) = fd;
    if (ioctl(fd, PERF_EVENT_IOC_ID, &id))
        return -errno;
    map_put_u64(&f->kinds, id, (size_t)kind, NULL);
    if (c->fd < 0)
        return map_ring(f, c, fd);
    return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->fd) ? -errno : 0;
}

/* Opens the events of a thread. Returns 0, also if the thread has ended or a CPU is offline by now; or -errno. */
static int add_thread(struct page_faults *f, pid_t tid)
{
    vec_each (struct cpu, c, &f->cpus)
        for (int kind = MINOR; kind < KINDS; kind++) {
            int bad = add_event(f, tid, c, kind);
            if (bad == -ESRCH)
                return 0;
            if (bad && bad != -ENODEV)
                return bad;
        }
    return 0;
}

/* ---- threads and CPUs ---- */

/* Opens events for all threads that have none yet, and adds their number to *added. Returns 0 or -errno. */
static int add_new_threads(struct page_faults *f, size_t *added)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)f->pid);
    DIR *d = opendir(path);
    int bad = d ? 0 : -errno;
    for (struct dirent *entry; !bad && (entry = readdir(d));) {
        int tid = atoi(entry->d_name);
        bool new = false;
        if (tid > 0)
            map_put_u64(&f->tids, (uint64_t)tid, 0, &new);
        if (new)
            bad = add_thread(f, tid);
        *added += new;
    }
    if (d)
        closedir(d);
    return bad == -ENOENT ? -ESRCH : bad;
}

static int find_cpus(struct page_faults *f)
{
    char list[4096] = "";
    FILE *file = fopen("/sys/devices/system/cpu/online", "re");
    if (!file)
        return -errno;
    bool got = fgets(list, sizeof(list), file);
    fclose(file);
    char *at = list, *end;
    for (; got && *at >= '0' && *at <= '9'; at = *end == ',' ? end + 1 : end) {
        long first = strtol(at, &end, 10), last = first;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (; first <= last && first < CPUS_MAX; first++)
            *vec_push(&f->cpus) = (struct cpu){.number = (int)first, .fd = -1};
    }
    return f->cpus.len ? 0 : -ENODEV;
}

static int complain(struct error *e, pid_t pid, int bad)
{
    if (bad == -EACCES || bad == -EPERM)
        return error_set(e, -bad,
                         "page faults of process %d cannot be counted: run as its user or as root, with "
                         "CAP_PERFMON or kernel.perf_event_paranoid of at most 2",
                         (int)pid);
    if (bad == -ESRCH)
        return error_set(e, ESRCH, "process %d has ended", (int)pid);
    if (bad == -EMFILE)
        return error_set(e, EMFILE,
                         "process %d has too many threads: two descriptors for each of them and each CPU "
                         "are more than ulimit -n allows",
                         (int)pid);
    return error_set(e, -bad, "page faults of process %d cannot be counted: perf_event_open: %s", (int)pid,
                     strerror(-bad));
}

static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int page_faults_open(struct page_faults **out, pid_t pid, struct error *e)
{
    struct page_faults *f = mem_alloc(sizeof(*f));
    f->pid = pid;
    f->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    f->ring_bytes = RING_BYTES_MOST;
    f->counts_lost = true;
    raise_descriptors();
    int bad = find_cpus(f);
    size_t added = 1;
    for (int rounds = 0; !bad && added && rounds < ROUNDS_MOST; rounds++) {
        added = 0;
        bad = add_new_threads(f, &added);
    }
    if (!bad && !f->polled.len)
        bad = -ESRCH;
    if (bad) {
        page_faults_close(f);
        return complain(e, pid, bad);
    }
    *out = f;
    return 0;
}

void page_faults_close(struct page_faults *f)
{
    if (!f)
        return;
    vec_each (struct cpu, c, &f->cpus)
        if (c->fd >= 0)
            munmap(c->ring.page, c->ring.page_bytes + c->ring.bytes);
    vec_each (int, fd, &f->fds)
        close(*fd);
    vec_release(&f->cpus);
    vec_release(&f->polled);
    vec_release(&f->fds);
    map_release(&f->kinds);
    map_release(&f->tids);
    free(f);
}

/* ---- reading ---- */

/*
 * Returns whether `s` reports the fault of the sample `before` again. If a thread has two events of a kind, a fault
 * writes two samples, one directly behind the other: with the same time and id if the kernel computes these once (6.18
 * does), else with different ones. The first sample of another fault has another time, and the id of the same event.
 */
static bool is_told_twice(const struct sample *before, const struct sample *s)
{
    return before->id && before->tid == s->tid && before->address == s->address &&
           (before->time == s->time || before->id != s->id);
}

static void take_sample(struct page_faults *f, const struct sample *s)
{
    struct cpu *c = f->reading;
    size_t kind = map_get_u64(&f->kinds, s->id);
    if (s->header.size < sizeof(*s) || kind == MAP_NONE || s->pid != (uint32_t)f->pid)
        return;
    size_t before = c->last.id ? map_get_u64(&f->kinds, c->last.id) : MAP_NONE;
    if (before == kind && is_told_twice(&c->last, s))
        return;
    c->last = *s;
    f->take(f->arg, &(struct page_fault){s->address, s->time, s->tid, kind == MAJOR});
}

static void take_record(void *arg, const struct perf_event_header *record)
{
    struct page_faults *f = arg;
    if (record->type == PERF_RECORD_SAMPLE)
        take_sample(f, (const struct sample *)record);
    else if (record->type == PERF_RECORD_LOST && record->size >= sizeof(struct lost))
        f->reading->reported_lost += ((const struct lost *)record)->lost;
}

void page_faults_drain(struct page_faults *f, page_faults_fn *take, void *arg)
{
    f->take = take;
    f->arg = arg;
    vec_each (struct cpu, c, &f->cpus) {
        uint64_t tail;
        if (c->fd < 0)
            continue;
        f->reading = c;
        perf_ring_read(&c->ring, &tail, take_record, f);
        perf_ring_release(&c->ring, tail);
    }
}

void page_faults_wait(struct page_faults *f, int timeout_ms)
{
    poll(f->polled.at, f->polled.len, timeout_ms);
}

uint64_t page_faults_lost(const struct page_faults *f)
{
    uint64_t reported = 0, counted = 0, values[2];
    vec_each (const struct cpu, c, &f->cpus)
        reported += c->reported_lost;
    vec_each (const int, fd, &f->fds)
        if (f->counts_lost && read(*fd, values, sizeof(values)) == sizeof(values))
            counted += values[1];
    return reported > counted ? reported : counted;
}

bool page_faults_user_alone(const struct page_faults *f)
{
    return f->user_alone;
}
