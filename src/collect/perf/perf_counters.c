/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/perf/perf_counters.h"

#include <errno.h>
#include <unistd.h>

#include "collect/perf/perf_open.h"

#define DTLB_LOAD_MISSES                                                                                     \
    (PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static const struct {
    const char *key;
    uint32_t type;
    uint64_t config;
} events[] = {
    {"minor_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"dtlb_load_misses", PERF_TYPE_HW_CACHE, DTLB_LOAD_MISSES},
};
#define N_EVENTS (sizeof(events) / sizeof(*events))
_Static_assert(N_EVENTS <= OVERVIEW_EVENTS_MAX, "room for all");

int perf_counters_open(struct perf_counters *c)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    int bad = 0;
    *c = (struct perf_counters){.processors = processors > 0 ? (unsigned)processors : 1};
    for (size_t i = 0; i < N_EVENTS; i++) {
        struct perf_event_attr attr = {
            .size = sizeof(attr), .type = events[i].type, .config = events[i].config, .read_format = 0};
        c->open[i] = true;
        for (unsigned cpu = 0; cpu < c->processors; cpu++) {
            int fd = perf_open(&attr, -1, (int)cpu);
            int why = fd < 0 ? -fd : 0;
            *vec_push(&c->fds) = fd;
            if (why && why != ENODEV) { /* ENODEV: the processor is offline, or has no such event */
                c->open[i] = false;
                bad = i == 0 ? -why : bad;
            } else if (why && cpu == 0) {
                c->open[i] = false;
            }
        }
    }
    return bad;
}

void perf_counters_close(struct perf_counters *c)
{
    vec_each (int, fd, &c->fds)
        if (*fd >= 0)
            close(*fd);
    vec_release(&c->fds);
}

void perf_counters_read(struct perf_counters *c, struct overview *m)
{
    m->n_events = 0;
    for (size_t i = 0; i < N_EVENTS && c->fds.len; i++) {
        uint64_t sum = 0, count;
        for (unsigned cpu = 0; cpu < c->processors; cpu++) {
            int fd = c->fds.at[i * c->processors + cpu];
            if (fd >= 0 && read(fd, &count, sizeof(count)) == sizeof(count))
                sum += count;
        }
        m->events[m->n_events++] =
            (struct overview_event){.key = events[i].key, .count = sum - c->before[i], .known = c->open[i]};
        c->before[i] = sum;
    }
}
