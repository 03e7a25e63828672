/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sinks that write events into the rings of a trace (ring/ring_write.h), and a count for each CPU, made in the same
 * way.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/syscall.h"
#include "bench/hooks/bench_events.h"
#include "bench/hooks/bench_reader.h"
#include "ring/ring_write.h"

#define PACKET_BYTES (64u << 10) /* those of a trace */
#define PAGE_BYTES   4096u
#define CPUS_MOST    4096u
#define EVENT_ID     1

/* libc's registration for restartable sequences (2.35 and later). */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static struct ring ring;
static struct ring_cpu *control; /* of each CPU, and of the ring that threads share */
static uint32_t cpus;
static __thread uint32_t thread_id __attribute__((tls_model("initial-exec")));

static uint64_t read_tsc(void)
{
    return __builtin_ia32_rdtsc();
}

static uint64_t read_clock(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* A page of shared memory exists once it was read. */
static bool reach(char *from, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
        load_relaxed(&from[at]);
    return true;
}

static void *map(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Who empties the rings. */
enum emptying { OVERWRITTEN, NEVER_READ, READ };

static const char *begin_ring(bool is_tsc, enum emptying how)
{
    const long n = sysconf(_SC_NPROCESSORS_CONF);
    cpus = n > 0 && n <= (long)CPUS_MOST ? (uint32_t)n : CPUS_MOST;
    const bool has_area = &__rseq_size && __rseq_size;
    struct ring_header *header = map(ring_file_bytes(cpus, BENCH_RING_BYTES));
    struct ring_positions *read = map(sizeof(*read) + (cpus + 1ul) * sizeof(*read->read));
    if (!header || !read)
        return "there is no memory for the rings";
    ring_begin_positions(read, cpus, BENCH_RING_BYTES);
    ring = (struct ring){.is_tsc = is_tsc, .ticks = is_tsc ? read_tsc : read_clock, .reach = reach};
    ring.read = how == OVERWRITTEN ? NULL : read;
    ring_begin(&ring, header, cpus, PACKET_BYTES, BENCH_RING_BYTES, has_area ? __rseq_offset : 0);
    control = (struct ring_cpu *)(header + 1);
    if (how == READ && !bench_reader_start(header, ring_file_bytes(cpus, BENCH_RING_BYTES), read))
        return "cannot start a thread for the reader: raise `ulimit -u` and `ulimit -v`";
    return NULL;
}

const char *bench_events_begin(unsigned threads)
{
    (void)threads;
    return begin_ring(true, OVERWRITTEN);
}

const char *bench_events_begin_mono(unsigned threads)
{
    (void)threads;
    return begin_ring(false, OVERWRITTEN);
}

const char *bench_events_begin_full(unsigned threads)
{
    (void)threads;
    return begin_ring(true, NEVER_READ);
}

const char *bench_events_begin_read(unsigned threads)
{
    (void)threads;
    return begin_ring(true, READ);
}

/* `hits`: those that were lost are in it, and the reader does not see them. */
void bench_events_settle(uint64_t hits)
{
    const uint64_t lost = bench_events_lost();
    bench_reader_wait(hits > lost ? hits - lost : 0);
}

static __attribute__((noinline)) void find_thread_cold(void)
{
    thread_id = (uint32_t)sys_call(SYS_gettid, 0);
}

static inline uint64_t what(uint32_t words)
{
    if (unlikely(!thread_id))
        find_thread_cold();
    return ring_what(EVENT_ID, words, thread_id);
}

void bench_events_hit(void *function, void *caller)
{
    ring_put(&ring, 4, what(4), (uintptr_t)function, (uintptr_t)caller, 0);
}

void bench_events_hit_site(void *function, void *caller)
{
    ring_put(&ring, 5, what(5), (uintptr_t)function, (uintptr_t)caller, (uintptr_t)BENCH_CALLER);
}

/* The event is put together before it is copied into the ring, as one with a string is. */
void bench_events_hit_payload(void *function, void *caller)
{
    uint64_t event[RING_EVENT_WORDS + 2 + BENCH_PAYLOAD_MOST / 8];
    const uint32_t bytes = bench_payload_bytes, words = RING_EVENT_WORDS + 2 + (bytes + 7) / 8;
    event[0] = 0; /* the time */
    event[1] = what(words);
    event[2] = (uintptr_t)function;
    event[3] = (uintptr_t)caller;
    memcpy(event + RING_EVENT_WORDS + 2, bench_payload, (bytes + 7) / 8 * 8);
    ring_append(&ring, event, words);
}

/* By frame pointers, which this program has, up to the frame of the loop's caller. */
void bench_events_hit_frames(void *function, void *caller)
{
    uint64_t event[RING_EVENT_WORDS + 2 + BENCH_FRAMES] = {0, 0, (uintptr_t)function, (uintptr_t)caller};
    const uint32_t words = RING_EVENT_WORDS + 2 + bench_walk(event + RING_EVENT_WORDS + 2, BENCH_FRAMES);
    event[1] = what(words);
    ring_append(&ring, event, words);
}

void bench_events_hit_untimed(void *function, void *caller)
{
    ring_put_some(&ring, 4, what(4), (uintptr_t)function, (uintptr_t)caller, 0);
}

const char *bench_events_begin_untimed(unsigned threads)
{
    const char *bad = bench_events_begin(threads);
    if (!bad)
        ring.at.stamps = ring_stamps(ring.header->packet_bytes, 0);
    return bad;
}

/* ---- what became of them ---- */

/* Heads have the number of events and a position modulo powers of two, which no request comes near. */
static struct {
    uint64_t events, words;
} seen[CPUS_MOST], sums;

static void add_up(void)
{
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        const uint64_t head = load_acquire(&control[cpu].head), events = ring_count(head),
                       words = ring_position(head);
        sums.events += (events - seen[cpu].events) & RING_COUNT_MASK;
        sums.words += (words - seen[cpu].words) & RING_POSITION_MASK;
        seen[cpu].events = events;
        seen[cpu].words = words;
    }
}

uint64_t bench_events_hits(void)
{
    add_up();
    return sums.events + load_relaxed(&control[cpus].written);
}

uint64_t bench_events_bytes(void)
{
    add_up();
    return sums.words * sizeof(uint64_t);
}

uint64_t bench_events_lost(void)
{
    uint64_t sum = 0;
    for (uint32_t cpu = 0; cpu <= cpus; cpu++)
        for (unsigned why = 0; why < RING_LOSSES; why++)
            sum += load_relaxed(&control[cpu].lost[why]);
    return sum;
}

/* ---- a count for each CPU ---- */

#define COUNT_AT offsetof(struct ring_cpu, written) /* of a CPU's own ring it is not used otherwise */

const char *bench_cpu_begin(unsigned threads)
{
    const char *why = bench_events_begin(threads);
    return why || ring.at.area
               ? why
               : "libc does not register threads for restartable sequences: glibc 2.35 or later does";
}

void bench_cpu_hit(void *function, void *caller)
{
    (void)function;
    (void)caller;
    while (sequence_count(&ring.at, COUNT_AT) != SEQUENCE_DONE)
        ;
}

uint64_t bench_cpu_hits(void)
{
    uint64_t sum = 0;
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        sum += load_relaxed(&control[cpu].written);
    return sum;
}
