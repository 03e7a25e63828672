/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/memcg/memcg_cost.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "bench/memcg/memcg_group.h"
#include "bench/memcg/memcg_work.h"

#define WARM_NS      15000000u /* before the batches of a turn, beside a grace period of RCU */
#define BATCH_NS     1000000u
#define BATCHES      8
#define TURNS_MOST   1024
#define TURNS_LEAST  8
#define DROPPED_MOST 16  /* in a row: the machine has no time for us */
#define SETTLE_TRIES 100 /* 10 ms apart */

/* What the process that measures is given, and what it returns, in memory that both share. */
struct shared {
    struct memcg_cost_options options;
    struct memcg_group group;
    struct memcg_cost result;
    struct error error; /* "": none */
};

/* ---- time ---- */

static uint64_t now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static long preemptions(void)
{
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_nivcsw;
}

/* Sorts the values. */
static struct memcg_median median_of(double *values, size_t n)
{
    order_sort(values, n);
    return (struct memcg_median){order_median(values, n), order_median_interval(values, n)};
}

/* Returns how many operations take about BATCH_NS. */
static uint32_t batch_size(struct memcg_work *w)
{
    uint32_t n = 16;
    for (;;) {
        const uint64_t began = now();
        if (w->kind->repeat(w, n) || now() - began >= BATCH_NS / 2 || 2 * n > MEMCG_WORK_PAGES)
            return n;
        n *= 2;
    }
}

static int enter(const struct shared *s, enum memcg_cost_side side)
{
    const int bad = memcg_group_enter(&s->group, side == MEMCG_COST_OWN);
    if (bad || s->result.profiling.text[0])
        return bad;
    return mem_profiling_set(&s->group.profiling, side == MEMCG_COST_PROFILED);
}

/*
 * Measures one turn of a side: the median of its batches, in ns for each operation; of those without preemption. The
 * kernel frees inodes and files after a grace period. Without waiting, a turn would free what the other side allocated.
 * Returns 1; 0: preempted in each batch; or -errno.
 */
static int measure_side(const struct shared *s, struct memcg_work *w, enum memcg_cost_side side, uint32_t n,
                        double *ns)
{
    double batches[BATCHES];
    size_t kept = 0;
    int bad = enter(s, side);
    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
    for (const uint64_t began = now(); !bad && now() - began < WARM_NS;)
        bad = w->kind->repeat(w, n);
    for (int i = 0; i < BATCHES && !bad; i++) {
        const long before = preemptions();
        const uint64_t began = now();
        bad = w->kind->repeat(w, n);
        const uint64_t took = now() - began;
        if (preemptions() == before)
            batches[kept++] = (double)took / n;
    }
    if (!bad && kept)
        *ns = median_of(batches, kept).value;
    return bad ? bad : kept > 0;
}

static void sum_up(struct memcg_cost_row *row, double (*turns)[TURNS_MOST], uint32_t n, bool profiled)
{
    double values[TURNS_MOST];
    for (int side = 0; side < (profiled ? MEMCG_COST_SIDES : MEMCG_COST_PROFILED); side++) {
        for (uint32_t i = 0; i < n; i++)
            values[i] = turns[side][i] / turns[MEMCG_COST_ROOT][i];
        row->ratio[side] = median_of(values, n);
        for (uint32_t i = 0; i < n; i++)
            values[i] = turns[side][i] - turns[MEMCG_COST_ROOT][i];
        row->more_ns[side] = median_of(values, n);
        memcpy(values, turns[side], n * sizeof(*values));
        row->ns[side] = median_of(values, n);
    }
    row->turns = n;
}

/* Returns 0, or -errno with a line. */
static int measure_time(const struct shared *s, struct memcg_work *w, struct memcg_cost_row *row)
{
    static double turns[MEMCG_COST_SIDES][TURNS_MOST];
    const bool profiled = !s->result.profiling.text[0];
    const int sides = profiled ? MEMCG_COST_SIDES : MEMCG_COST_PROFILED;
    const uint64_t end = now() + s->options.row_ns;
    uint32_t done = 0, dropped_now = 0;
    const uint32_t n = batch_size(w);
    while (done < TURNS_MOST && (done < TURNS_LEAST || now() < end)) {
        int got = 1;
        for (int i = 0; i < sides && got > 0; i++) {
            const int side = (row->turns_dropped + done) % 2 ? sides - 1 - i : i;
            got = measure_side(s, w, (enum memcg_cost_side)side, n, &turns[side][done]);
        }
        if (got < 0)
            return error_set(&row->unavailable, -got, "%s: %s", w->kind->name, strerror(-got));
        done += (uint32_t)got;
        row->turns_dropped += !got;
        dropped_now = got ? 0 : dropped_now + 1;
        if (dropped_now == DROPPED_MOST)
            return error_set(
                &row->unavailable, EBUSY,
                "other programs take the processor in each millisecond; stop them, or use nice -n -20");
    }
    sum_up(row, turns, done, profiled);
    return 0;
}

/* ---- charges ---- */

/* Reads the counter until it does not change: what was freed before is uncharged after a grace period. */
static int read_settled(const struct shared *s, enum memcg_part part, uint64_t *bytes)
{
    uint64_t before;
    int bad = memcg_group_read(&s->group, part, &before), equal = 0;
    for (int i = 0; i < SETTLE_TRIES && !bad && equal < 3; i++, before = *bytes) {
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
        usleep(10000);
        bad = memcg_group_read(&s->group, part, bytes);
        equal = *bytes == before ? equal + 1 : 0;
    }
    return bad;
}

static int measure_charge(const struct shared *s, struct memcg_work *w, struct memcg_cost_row *row)
{
    const enum memcg_part part = w->kind->part;
    uint64_t before = 0, held = 0, after = 0;
    int bad = enter(s, MEMCG_COST_OWN);
    if (!bad)
        bad = read_settled(s, part, &before);
    if (!bad)
        bad = w->kind->hold(w, w->hold_max);
    if (!bad)
        bad = read_settled(s, part, &held);
    w->kind->drop(w);
    if (!bad)
        bad = read_settled(s, part, &after);
    row->held = w->hold_max;
    row->charged_bytes = held > before ? held - before : 0;
    row->remaining_bytes = after > before ? after - before : 0;
    return bad ? error_set(&row->unavailable, -bad, "counters of the cgroup: %s", strerror(-bad)) : 0;
}

/* ---- the process ---- */

static int pin(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    const int cpu = sched_getcpu();
    if (cpu < 0)
        return -errno;
    CPU_SET((unsigned)cpu, &one);
    return sched_setaffinity(0, sizeof(one), &one) ? -errno : 0;
}

static void measure_all(struct shared *s)
{
    const int bad = pin();
    if (bad) {
        error_set(&s->error, -bad, "cannot stay on one CPU: %s", strerror(-bad));
        return;
    }
    for (size_t i = 0; i < memcg_work_kinds_n; i++) {
        struct memcg_cost_row *row = &s->result.rows[i];
        struct memcg_work w;
        if (memcg_work_open(&w, row->kind, &row->unavailable))
            continue;
        if (!measure_charge(s, &w, row) && !s->options.charges_only)
            measure_time(s, &w, row);
        memcg_work_close(&w);
    }
}

static void run_process(struct shared *s)
{
    const pid_t parent = getpid(), child = fork();
    int status = 0;
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        memcg_group_forked(&s->group);
        measure_all(s);
        _exit(0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child < 0)
        error_set(&s->error, errno, "fork: %s", strerror(errno));
    else if (WIFSIGNALED(status))
        error_set(&s->error, EINTR, "the process that measures was ended by signal %d", WTERMSIG(status));
}

int memcg_cost_measure(const struct memcg_cost_options *o, struct memcg_cost *out, struct error *e)
{
    _Static_assert(sizeof(out->rows) / sizeof(*out->rows) == MEMCG_COST_ROWS, "a row for each kind");
    struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return error_set(e, errno, "%zu bytes of shared memory: %s", sizeof(*s), strerror(errno));
    s->options = *o;
    struct mem_profiling profiling;
    mem_profiling_open(&profiling, MEM_PROFILING_PROC, &s->result.profiling);
    int bad = memcg_group_open(&s->group, &profiling, e);
    if (!bad) {
        for (size_t i = 0; i < memcg_work_kinds_n; i++)
            s->result.rows[i].kind = &memcg_work_kinds[i];
        s->result.hierarchy = s->group.hierarchy;
        run_process(s);
        bad = memcg_group_close(&s->group, e);
        if (!bad && s->error.text[0])
            bad = error_set(e, EIO, "%s", s->error.text);
        *out = s->result;
    }
    munmap(s, sizeof(*s));
    return bad;
}
