/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/ring under stress: threads that move between CPUs, and a storm of signals whose handler writes, too, into small
 * rings that a reader empties meanwhile, or that are overwritten. The writers count what they do; it must be what was
 * read and what was lost, to the unit, each event whole, and times never back within a CPU.
 *
 * rings SECONDS [PATIENCE]: prints a TAP. Built from sources with a planted error (rings.py) it must fail; with
 * PATIENCE it then ends at the first failure.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/clock_ns.h"
#include "ring/ring_read.h"
#include "ring/ring_write.h"

#define THREADS       6u
#define PACKET_BYTES  RING_PACKET_BYTES_MIN
#define RING_BYTES    (8u * PACKET_BYTES)
#define WORDS_MOST    40u
#define STORM_US      50
#define CPUS_MOST     64u
#define ABORTED_LEAST 10000u /* a run goes on for so many */
#define FACTOR        UINT64_C(0x9e3779b97f4a7c15)

static struct ring ring;
static volatile int stop;
static bool is_hasty; /* there is a planted error to be found */
static uint64_t made[THREADS + 1], handled, aborted;
static uint64_t patience_ns =
    UINT64_C(60000000000);     /* how much longer a run may take until there are so many */
static __thread uint64_t mine; /* events of this thread, those of its handlers included */
static __thread uint32_t thread;

#define SLEEPER 99u
static atomic_uint sleeps; /* 1: the sleeper is between taking a slot and writing it; 2: it is to go on */

static uint64_t ticks(void)
{
    if (thread == SLEEPER && !atomic_load(&sleeps))
        for (atomic_store(&sleeps, 1); atomic_load(&sleeps) == 1;)
            usleep(100);
    return __builtin_ia32_rdtsc();
}

static bool reach(char *from, uint64_t bytes)
{
    return !madvise(from, bytes, MADV_POPULATE_WRITE); /* other threads may do the same, and write already */
}

/* Each word of an event follows from its number. */
static void put(void)
{
    const uint64_t k = __atomic_fetch_add(&mine, 1, __ATOMIC_RELAXED);
    uint64_t event[WORDS_MOST];
    if (k % 7) {
        ring_put(&ring, 4 + (k & 1), ring_what(1, 4 + (k & 1), thread), k, k * FACTOR + 3, k * FACTOR + 4);
        return;
    }
    const uint32_t words = 4 + (uint32_t)(k / 7 % (WORDS_MOST - 4));
    event[1] = ring_what(2, words, thread);
    event[2] = k;
    for (uint32_t i = 3; i < words; i++)
        event[i] = k * FACTOR + i;
    ring_append(&ring, event, words);
}

static void on_signal(int number)
{
    (void)number;
    for (int i = 0; i < 3; i++)
        put();
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void *write_events(void *arg)
{
    thread = (uint32_t)(uintptr_t)arg;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_UNBLOCK, &all, NULL);
    for (unsigned n = 1; !stop; n++) {
        for (int i = 0; i < 64; i++)
            put();
        if (n % 16 == 0) { /* to another CPU */
            cpu_set_t to;
            CPU_ZERO(&to);
            CPU_SET((n / 16 + thread) % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &to);
            sched_setaffinity(0, sizeof(to), &to);
        }
    }
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    made[thread] = mine;
    return NULL;
}

struct seen {
    uint64_t events, overwritten, lost, torn, back, bad;
};

static void check_piece(struct seen *s, const struct ring_piece *p, uint64_t *last)
{
    const struct ring_event *e;
    uint32_t at = 0, events = 0;
    bool bad;
    for (; (e = ring_piece_event(p, &at, &bad)); events++) {
        const uint64_t *words = (const uint64_t *)e, k = words[2];
        const uint32_t n = e->size & RING_SIZE_MASK;
        s->back += e->ticks < *last;
        *last = e->ticks;
        for (uint32_t i = 3; i < n; i++)
            s->torn += words[i] != k * FACTOR + i;
    }
    s->torn += bad || events != p->n_events;
    s->events += events;
    s->overwritten += p->overwritten;
}

static bool read_all(struct ring_reader *r, struct ring_positions *positions, struct seen *s, uint64_t *last)
{
    bool any = false;
    struct ring_piece p;
    for (uint32_t cpu = 0; cpu < ring_reader_rings(r); cpu++)
        for (int found; (found = ring_reader_next(r, cpu, &p)) != 0; any = true) {
            if (found > 0)
                check_piece(s, &p, &last[cpu]);
            s->bad += found < 0;
            store_release(&positions->read[cpu], ring_reader_position(r, cpu));
            if (s->bad > 1000)
                return false;
        }
    return any;
}

static void storm(bool on)
{
    const struct itimerval each = {{0, on ? STORM_US : 0}, {0, on ? STORM_US : 0}};
    setitimer(ITIMER_REAL, &each, NULL);
}

/* Rings, and their reader. */
struct test {
    uint32_t cpus;
    uint64_t bytes;
    char *file;
    struct ring_positions *positions;
    struct ring_reader *reader;
    uint64_t last[CPUS_MOST + 1]; /* times, by ring */
    struct seen seen;
};

static struct test begin(bool overwrites, bool shared)
{
    struct test t = {.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF)};
    t.bytes = ring_file_bytes(t.cpus, RING_BYTES);
    t.file = mmap(NULL, t.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    t.positions = calloc(1, sizeof(*t.positions) + (t.cpus + 1) * sizeof(uint64_t));
    if (t.file == MAP_FAILED || !t.positions || t.cpus > CPUS_MOST)
        exit(1);
    ring_begin_positions(t.positions, t.cpus, RING_BYTES);
    ring = (struct ring){
        .ticks = ticks, .reach = reach, .is_tsc = true, .read = overwrites ? NULL : t.positions};
    ((struct ring_header *)t.file)->overwrites = overwrites;
    ring_begin(&ring, (struct ring_header *)t.file, t.cpus, PACKET_BYTES, RING_BYTES,
               shared ? 0 : __rseq_offset);
    t.reader = ring_reader_new(t.file, t.bytes);
    return t;
}

static struct seen end(struct test *t)
{
    while (read_all(t->reader, t->positions, &t->seen, t->last))
        ;
    for (uint32_t at = 0; at <= t->cpus; at++)
        for (int k = 0; k < RING_LOSSES; k++)
            t->seen.lost += ring_reader_lost(t->reader, at, (enum ring_loss)k);
    aborted += ring.header->aborted;
    ring_reader_free(t->reader);
    munmap(t->file, t->bytes);
    free(t->positions);
    return t->seen;
}

static struct seen run(bool overwrites, bool shared, unsigned seconds)
{
    struct test t = begin(overwrites, shared);
    pthread_t threads[THREADS];
    stop = 0;
    for (uintptr_t k = 0; k < THREADS; k++)
        pthread_create(&threads[k], NULL, write_events, (void *)(k + 1));
    storm(true);
    const uint64_t until = clock_ns(CLOCK_MONOTONIC) + seconds * UINT64_C(1000000000);
    for (uint64_t now = 0; now < until || (now < until + patience_ns && overwrites && !shared &&
                                           aborted + ring.header->aborted < ABORTED_LEAST);
         now = clock_ns(CLOCK_MONOTONIC))
        if (!read_all(t.reader, t.positions, &t.seen, t.last))
            usleep(200);
    stop = 1;
    for (unsigned k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    storm(false);
    return end(&t);
}

static void put_one(uint64_t k)
{
    uint64_t event[] = {0, ring_what(1, 4, thread), k, k * FACTOR + 3};
    ring_append(&ring, event, 4);
}

static void *sleep_inside(void *arg)
{
    thread = SLEEPER;
    put_one(0);
    return arg;
}

/* A writer sleeps on its slot while others go round the ring: each lap loses the event that meets the slot, and counts
 * it; the sleeper's own is not believed. */
static bool check_sleeper(int number)
{
    const uint64_t laps = 3, slots = RING_BYTES / sizeof(struct ring_slot);
    struct test t = begin(true, true);
    pthread_t sleeper;
    pthread_create(&sleeper, NULL, sleep_inside, NULL);
    while (atomic_load(&sleeps) != 1)
        usleep(100);
    for (uint64_t k = 1; k <= laps * slots; k++)
        put_one(k);
    atomic_store(&sleeps, 2);
    pthread_join(sleeper, NULL);
    const struct seen s = end(&t);
    const bool good = s.lost == laps && s.events == slots - 1 && !s.torn &&
                      s.events + s.overwritten + s.lost == laps * slots + 1;
    printf("%s %d - a writer that sleeps on its slot\n# read %lu of %lu slots, overwritten %lu, lost %lu, "
           "torn %lu\n",
           good ? "ok" : "not ok", number, s.events, slots, s.overwritten, s.lost, s.torn);
    return good;
}

static bool check(int number, const char *name, bool overwrites, bool shared, unsigned seconds)
{
    const struct seen s = run(overwrites, shared, seconds);
    uint64_t sum = 0;
    for (unsigned k = 1; k <= THREADS; k++)
        sum += made[k];
    const bool good = sum == s.events + s.overwritten + s.lost && !s.torn && !s.back && !s.bad && s.events &&
                      (overwrites ? s.overwritten && (shared || !s.lost) : !s.overwritten);
    printf("%s %d - %s\n# made %lu, read %lu, overwritten %lu, lost %lu; torn %lu, back %lu, bad %lu; "
           "aborted %lu, "
           "handlers %lu\n",
           good ? "ok" : "not ok", number, name, sum, s.events, s.overwritten, s.lost, s.torn, s.back, s.bad,
           aborted, handled);
    fflush(stdout);
    if (!good && is_hasty)
        exit(1);
    return good;
}

int main(int argc, char **argv)
{
    const unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    is_hasty = argc > 2;
    if (is_hasty)
        patience_ns = (uint64_t)atoi(argv[2]) * UINT64_C(1000000000);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigset_t alarm;
    puts("1..6");
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL); /* but in the threads */
    bool good = check(1, "rings that are full discard", false, false, seconds);
    good = check(2, "rings that are full are overwritten", true, false, seconds) && good;
    good = check(3, "without sequences: a full ring discards", false, true, seconds) && good;
    good = check(4, "without sequences: a full ring is overwritten", true, true, seconds) && good;
    good = check_sleeper(5) && good;
    const bool enough = aborted >= ABORTED_LEAST;
    printf("%s 6 - sequences were aborted, 10,000 times at least\n", enough ? "ok" : "not ok");
    return good && enough ? 0 : 1;
}
