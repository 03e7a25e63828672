/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the cost of one event of a trace, in turns within one process that `allium trace --flight` observes: the
 * rings overwrite, so nobody reads them meanwhile.
 *
 *   loop     an empty loop                     rdtsc    a call of a function that reads the time stamp counter
 *   call     a call of an empty function       event    a call of a function that writes an event of 32 bytes into an
 *   emit     allium_emit() of an event that is on        own ring, by the code that the agent writes events with
 *   off      the same of one that is off       private  the same into memory of the thread, without any protocol
 *   untimed  as event, without the time        every8   as event, each eighth one with the time
 *   copy     as private, without the time: what 32 bytes of new memory cost
 *   small, small untimed   as event and untimed, into a ring that the CPU's second cache holds
 *   LTTng    lttng_ust_tracepoint(), if there is a session
 *   bare     __libc_malloc() and __libc_free() of 16 bytes
 *   traced   malloc() and free(), each of which writes an event
 *
 * A figure is the median of the differences to the floor beside it, with its 95 % interval. ALLIUM_BENCH_SECONDS:
 * the seconds of a process and part (2). Exits with 1 if a bound lies below a whole interval.
 *
 * What an event costs depends on the physical pages of its ring, by half a nanosecond. So bench/trace_events runs
 * several processes: each adds its rounds to the file ALLIUM_BENCH_ROUNDS, and the one with ALLIUM_BENCH_LAST prints.
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allium/event.h"
#include "base/sigsafe/atomic.h"
#include "ring/ring_write.h"
#include "stats.h"
#ifdef WITH_LTTNG
#include "trace_event_lttng.h"
#endif

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
extern const ptrdiff_t __rseq_offset;

#define ROUNDS_MOST   20001
#define BLOCK_NS      100000.0
#define RING_BYTES    (UINT64_C(4) << 20)
#define PACKET_BYTES  (UINT64_C(64) << 10)
#define SMALL_BYTES   (UINT64_C(256) << 10)
#define PRIVATE_WORDS (RING_BYTES / 8)
#define SHOTS         301
#define CACHE_BYTES   (8u << 20) /* enough to displace all else from the caches */

ALLIUM_EVENT(bench, on, ALLIUM_U64(a), ALLIUM_U64(b));
ALLIUM_EVENT(bench, off, ALLIUM_U64(a), ALLIUM_U64(b));

static struct ring ring, untimed, every8, small, small_untimed;
static __thread uint64_t *private_words, private_at;

#define APART __attribute__((noinline, noclone))

static uint64_t read_tsc(void)
{
    return __builtin_ia32_rdtsc();
}

static bool reach(char *from, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += 4096)
        load_relaxed(&from[at]);
    return true;
}

static APART void nothing(uint64_t a, uint64_t b)
{
    __asm__ volatile("" ::"r"(a), "r"(b));
}

static APART void read_counter(uint64_t a, uint64_t b)
{
    __asm__ volatile("" ::"r"(a), "r"(b), "r"(__builtin_ia32_rdtsc()));
}

static APART void write_event(uint64_t a, uint64_t b)
{
    ring_put(&ring, 4, ring_what(1, 4, 1), a, b, 0);
}

static APART void write_untimed(uint64_t a, uint64_t b)
{
    ring_put_some(&untimed, 4, ring_what(1, 4, 1), a, b, 0);
}

static APART void write_small(uint64_t a, uint64_t b)
{
    ring_put(&small, 4, ring_what(1, 4, 1), a, b, 0);
}

static APART void write_small_untimed(uint64_t a, uint64_t b)
{
    ring_put_some(&small_untimed, 4, ring_what(1, 4, 1), a, b, 0);
}

static APART void write_every8(uint64_t a, uint64_t b)
{
    ring_put_some(&every8, 4, ring_what(1, 4, 1), a, b, 0);
}

static APART void write_private(uint64_t a, uint64_t b)
{
    uint64_t *to = private_words + (private_at & (PRIVATE_WORDS - 1));
    to[0] = __builtin_ia32_rdtsc();
    to[1] = ring_what(1, 4, 1);
    to[2] = a;
    to[3] = b;
    private_at += 4;
}

static APART void write_copy(uint64_t a, uint64_t b)
{
    uint64_t *to = private_words + (private_at & (PRIVATE_WORDS - 1));
    to[0] = 0;
    to[1] = ring_what(1, 4, 1);
    to[2] = a;
    to[3] = b;
    private_at += 4;
}

enum way {
    LOOP,
    CALL,
    RDTSC,
    EVENT,
    UNTIMED,
    EVERY8,
    COPY,
    PRIVATE,
    EMIT,
    OFF,
    LTTNG,
    SMALL,
    SMALL_UNTIMED,
    BARE,
    TRACED,
    WAYS
};
static const char *const names[WAYS] = {"loop",   "call",  "rdtsc",         "event", "untimed",
                                        "every8", "copy",  "private",       "emit",  "off",
                                        "LTTng",  "small", "small untimed", "bare",  "traced"};

static __attribute__((noinline)) void run(enum way w, unsigned n)
{
    switch (w) {
#define LOOP_OF(...)                                                                                         \
    for (unsigned i = 0; i < n; i++) {                                                                       \
        __VA_ARGS__;                                                                                         \
        __asm__ volatile("" ::: "memory");                                                                   \
    }                                                                                                        \
    break
    case LOOP:
        LOOP_OF();
    case CALL:
        LOOP_OF(nothing(i, n));
    case RDTSC:
        LOOP_OF(read_counter(i, n));
    case EVENT:
        LOOP_OF(write_event(i, n));
    case UNTIMED:
        LOOP_OF(write_untimed(i, n));
    case EVERY8:
        LOOP_OF(write_every8(i, n));
    case COPY:
        LOOP_OF(write_copy(i, n));
    case PRIVATE:
        LOOP_OF(write_private(i, n));
    case EMIT:
        LOOP_OF(allium_emit(bench, on, .a = i, .b = n));
    case OFF:
        LOOP_OF(allium_emit(bench, off, .a = i, .b = n));
#ifdef WITH_LTTNG
    case LTTNG:
        LOOP_OF(lttng_ust_tracepoint(allium_bench, event, i, n));
#endif
    case SMALL:
        LOOP_OF(write_small(i, n));
    case SMALL_UNTIMED:
        LOOP_OF(write_small_untimed(i, n));
    case BARE:
        LOOP_OF(void *volatile p = __libc_malloc(16); __libc_free(p));
    case TRACED:
        LOOP_OF(void *volatile p = malloc(16); free(p));
    default:
        break;
    }
}

static bool is_there(enum way w)
{
#ifdef WITH_LTTNG
    return w != LTTNG || lttng_ust_tracepoint_enabled(allium_bench, event);
#else
    return w != LTTNG;
#endif
}

static double time_block(enum way w, unsigned n)
{
    const double began = stats_now_ns();
    run(w, n);
    return (stats_now_ns() - began) / n;
}

/* ---- differences ---- */

static double ns[WAYS][ROUNDS_MOST];

struct figure {
    double value, low, high;
};

/* Returns the median of the values, with the interval of the sign test. */
static struct figure median_of(const double *values, size_t n)
{
    double *sorted = malloc(n * sizeof(*sorted));
    memcpy(sorted, values, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), stats_compare);
    const double half = 0.98 * sqrt((double)n);
    const size_t low = (double)n / 2 > half ? (size_t)((double)n / 2 - half) : 0;
    const struct figure f = {sorted[n / 2], sorted[low], sorted[n - 1 - low]};
    free(sorted);
    return f;
}

/* Returns the figure of a - times * b, in ns. */
static struct figure difference(const double *a, const double *b, double times, size_t n)
{
    double *d = malloc(n * sizeof(*d));
    for (size_t i = 0; i < n; i++)
        d[i] = a[i] - times * b[i];
    const struct figure f = median_of(d, n);
    free(d);
    return f;
}

static bool reached = true;

static void judge(const char *what, struct figure f, double most, const char *unit)
{
    const char *said = f.high <= most ? "reached"
                       : f.low > most ? "MISSED"
                                      : "undecided: the interval holds the bound";
    printf("  %-44s %8.2f %s (%.2f-%.2f)   at most %.2f   %s\n", what, f.value, unit, f.low, f.high, most,
           said);
    reached &= f.low <= most;
}

static void judge_hot(size_t rounds, bool has_lttng)
{
    printf("%zu rounds; medians in ns:", rounds);
    for (int w = 0; w < WAYS; w++)
        if (w != LTTNG || has_lttng)
            printf(" %s %.2f,", names[w], stats_median(ns[w], rounds));
    printf("\n");
    judge("event, over rdtsc", difference(ns[EVENT], ns[RDTSC], 1, rounds), 2, "ns");
    judge("event without a time, over the call", difference(ns[UNTIMED], ns[CALL], 1, rounds), 1, "ns");
    const struct figure in_cache = difference(ns[SMALL], ns[RDTSC], 1, rounds),
                        untimed_in_cache = difference(ns[SMALL_UNTIMED], ns[CALL], 1, rounds);
    printf(
        "  in a ring of 256 KiB: %.2f ns (%.2f-%.2f) over rdtsc; without a time %.2f ns (%.2f-%.2f) over the "
        "call\n",
        in_cache.value, in_cache.low, in_cache.high, untimed_in_cache.value, untimed_in_cache.low,
        untimed_in_cache.high);
    judge("allium_emit(), over rdtsc", difference(ns[EMIT], ns[RDTSC], 1, rounds), 2, "ns");
    judge("allium_emit() that is off, over the loop", difference(ns[OFF], ns[LOOP], 1, rounds), 0.54 + 0.2,
          "ns");
    judge("traced malloc+free, over bare + 2 rdtsc", difference(ns[TRACED], ns[BARE], 1, rounds),
          2 * (stats_median(ns[RDTSC], rounds) + 4), "ns");
    if (!has_lttng) {
        printf("  LTTng: there is no session of it: bench/trace_events starts one where lttng-tools are "
               "installed\n");
        return;
    }
    const struct stats_ratio r = stats_ratio(ns[EVENT], ns[LTTNG], rounds),
                             e = stats_ratio(ns[EMIT], ns[LTTNG], rounds);
    judge("event / LTTng's", (struct figure){r.ratio, r.low, r.high}, 1.0 / 7, "  ");
    judge("allium_emit() / LTTng's", (struct figure){e.ratio, e.low, e.high}, 1.0 / 7, "  ");
}

/* The rounds of the processes before this one. Returns how many there are. */
static size_t read_rounds(const char *path)
{
    size_t rounds = 0;
    FILE *f = path ? fopen(path, "r") : NULL;
    if (f && fread(&rounds, sizeof(rounds), 1, f) == 1 && fread(ns, sizeof(ns), 1, f) != 1)
        exit(2);
    if (f)
        fclose(f);
    return rounds;
}

static void write_rounds(const char *path, size_t rounds)
{
    FILE *f = fopen(path, "w");
    if (!f || fwrite(&rounds, sizeof(rounds), 1, f) != 1 || fwrite(ns, sizeof(ns), 1, f) != 1 || fclose(f))
        exit(2);
}

/* Returns whether this process prints and judges. */
static bool hot(double seconds)
{
    unsigned n[WAYS];
    const char *path = getenv("ALLIUM_BENCH_ROUNDS");
    size_t rounds = read_rounds(path);
    for (int w = 0; w < WAYS; w++)
        n[w] = is_there((enum way)w) ? (unsigned)(BLOCK_NS / (time_block((enum way)w, 10000) + 0.2)) : 0;
    for (const double end = stats_now_ns() + seconds * 1e9; rounds < ROUNDS_MOST && stats_now_ns() < end;
         rounds++)
        for (int k = 0; k < WAYS; k++) {
            const enum way w = (enum way)((k + (int)rounds) % WAYS);
            ns[w][rounds] = n[w] ? time_block(w, n[w]) : 0;
        }
    if (path && !getenv("ALLIUM_BENCH_LAST")) {
        write_rounds(path, rounds);
        return false;
    }
    judge_hot(rounds, n[LTTNG]);
    return true;
}

/* ---- two threads at once ---- */

static struct {
    enum way way;
    unsigned n;
    atomic_uint ready;
    pthread_barrier_t begin;
    double ns[2];
    bool stop;
} pair;

static void begin_private(void)
{
    private_words =
        mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
}

static void stay_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

static void *other(void *arg)
{
    stay_on(*(int *)arg);
    begin_private();
    for (;;) {
        pthread_barrier_wait(&pair.begin);
        if (pair.stop)
            return NULL;
        atomic_fetch_add(&pair.ready, 1);
        while (atomic_load(&pair.ready) < 2)
            ;
        pair.ns[1] = time_block(pair.way, pair.n);
        pthread_barrier_wait(&pair.begin);
    }
}

static double time_pair(enum way w)
{
    pair.way = w;
    atomic_store(&pair.ready, 0);
    pthread_barrier_wait(&pair.begin);
    atomic_fetch_add(&pair.ready, 1);
    while (atomic_load(&pair.ready) < 2)
        ;
    pair.ns[0] = time_block(w, pair.n);
    pthread_barrier_wait(&pair.begin);
    return (pair.ns[0] + pair.ns[1]) / 2;
}

static void two_threads(double seconds, int first_cpu, int second_cpu)
{
    static double at[2][ROUNDS_MOST];
    pthread_t thread;
    size_t rounds = 0;
    pthread_barrier_init(&pair.begin, NULL, 2);
    pair.n = 20000;
    stay_on(first_cpu);
    pthread_create(&thread, NULL, other, &second_cpu);
    for (const double end = stats_now_ns() + seconds * 1e9; rounds < ROUNDS_MOST && stats_now_ns() < end;
         rounds++)
        for (int k = 0; k < 2; k++)
            at[(k + (int)rounds) % 2][rounds] = time_pair((k + (int)rounds) % 2 ? PRIVATE : EVENT);
    pair.stop = true;
    pthread_barrier_wait(&pair.begin);
    pthread_join(thread, NULL);
    const struct stats_ratio r = stats_ratio(at[0], at[1], rounds);
    printf("two threads on two CPUs, %zu rounds: event %.2f ns, private %.2f ns\n", rounds,
           stats_median(at[0], rounds), stats_median(at[1], rounds));
    judge("two threads, event / private", (struct figure){r.ratio, r.low, r.high}, 1.05, "  ");
}

/* ---- one event after other data has displaced all from the caches ---- */

static void cold(void)
{
    static double at[WAYS][SHOTS];
    char *other_data = malloc(CACHE_BYTES);
    memset(other_data, 1, CACHE_BYTES);
    for (int shot = 0; shot < SHOTS; shot++)
        for (int w = LOOP; w <= LTTNG; w++) {
            if (!is_there((enum way)w))
                continue;
            for (size_t k = 0; k < CACHE_BYTES; k += 64)
                other_data[k]++;
            at[w][shot] = time_block((enum way)w, 1);
        }
    free(other_data);
    printf("cold, %d single calls each; medians in ns:", SHOTS);
    for (int w = LOOP; w <= LTTNG; w++)
        if (is_there((enum way)w))
            printf(" %s %.0f,", names[w], stats_median(at[w], SHOTS));
    printf("\n");
    const struct figure event = difference(at[EVENT], at[LOOP], 1, SHOTS),
                        emit = difference(at[EMIT], at[LOOP], 1, SHOTS);
    judge("cold event, over the clock", event, 900, "ns");
    judge("cold allium_emit(), over the clock", emit, 900, "ns");
    if (!is_there(LTTNG))
        return;
    const struct figure theirs = difference(at[LTTNG], at[LOOP], 1, SHOTS);
    printf("  cold LTTng, over the clock                   %8.2f ns (%.2f-%.2f)\n", theirs.value, theirs.low,
           theirs.high);
    judge("cold allium_emit() / LTTng's",
          (struct figure){emit.value / theirs.value, emit.low / theirs.high, emit.high / theirs.low}, 0.25,
          "  ");
}

static void *map(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(2);
    return p;
}

static void begin_timed(struct ring *r, uint32_t cpus, uint64_t bytes)
{
    *r = (struct ring){.is_tsc = true, .ticks = read_tsc, .reach = reach};
    ring_begin(r, map(ring_file_bytes(cpus, bytes)), cpus, PACKET_BYTES, bytes, __rseq_offset);
}

static void begin_some(struct ring *r, uint32_t cpus, uint64_t bytes, uint64_t every)
{
    *r = (struct ring){.ticks = read_tsc, .reach = reach};
    ring_begin(r, map(ring_file_bytes(cpus, bytes)), cpus, PACKET_BYTES, bytes, __rseq_offset);
    r->at.stamps = ring_stamps(PACKET_BYTES, every);
}

int main(void)
{
    const char *limit = getenv("ALLIUM_BENCH_SECONDS");
    const double seconds = limit ? atof(limit) : 2;
    const uint32_t cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
    int usable[2] = {0}, n_usable = 0;
    cpu_set_t set;
    sched_getaffinity(0, sizeof(set), &set);
    for (int cpu = 0; cpu < CPU_SETSIZE && n_usable < 2; cpu++)
        if (CPU_ISSET(cpu, &set))
            usable[n_usable++] = cpu;
    begin_timed(&ring, cpus, RING_BYTES);
    begin_timed(&small, cpus, SMALL_BYTES);
    begin_some(&untimed, cpus, RING_BYTES, 0);
    begin_some(&small_untimed, cpus, SMALL_BYTES, 0);
    begin_some(&every8, cpus, RING_BYTES, 8);
    begin_private();
    stay_on(usable[n_usable - 1]);
    allium_emit(bench, on, .a = 1);
    if (!hot(seconds))
        return 0;
    if (n_usable == 2)
        two_threads(seconds, usable[1], usable[0]);
    else
        printf("two threads: this machine lets us use one CPU\n");
    cold();
    return !reached;
}
