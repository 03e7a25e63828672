/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings that BPF programs write, by the programs' own code: an interrupt comes before and after each step that
 * others can see, up to three deep, and writes events into the same ring; or
 * threads do at the same time. Each event is read
 * whole and once, or is counted as lost.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sigsafe/compiler.h"
#include "collect/trace/kernel_rings.h"
#include "ring/ring_read.h"

/* ---- what the programs get from the kernel and from bpf/sys.bpf.h ---- */

#define BPF_SYS_BPF_H
#define SEC(section)
#define __uint(name, value) int name
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define LIKELY(x)       likely(x)
#define UNLIKELY(x)     unlikely(x)
#include "bpf/kernel_events.h"

#define OPAQUE(x)   interrupt()
#define RING_STEP() interrupt()
/* What others can see happens between two interrupts. */
#define __sync_fetch_and_add(at, n)                                                                          \
    __extension__({                                                                                          \
        interrupt();                                                                                         \
        __typeof__(*(at)) added = __atomic_fetch_add(at, (__typeof__(*(at)))(n), __ATOMIC_SEQ_CST);          \
        interrupt();                                                                                         \
        added;                                                                                               \
    })
#define __sync_val_compare_and_swap(at, old, new)                                                            \
    __extension__({                                                                                          \
        interrupt();                                                                                         \
        __typeof__(*(at)) had = (old);                                                                       \
        __atomic_compare_exchange_n(at, &had, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);               \
        interrupt();                                                                                         \
        had;                                                                                                 \
    })

#define KERNEL_RING_SHAPE
static struct kernel_ring_shape shape;
static void interrupt(void);
static void *bpf_map_lookup_elem(const void *map, const void *key);
static uint32_t bpf_get_smp_processor_id(void);
static uint64_t bpf_ktime_get_ns(void);

#include "bpf/kernel_ring.bpf.h"

/* ---- the kernel ---- */

#define CPUS        2u
#define DEEPEST     3
#define WORDS_MAX   24u
#define EVENTS      300000u
#define THREADS     4
#define FOUND_BYTES (1u << 26)

static struct kernel_rings plan;
static char *array;
static struct kernel_ring_writer writers[CPUS];
static uint64_t now, happened, seen, overwritten, seed;
static uint32_t cpu_now, thread_count;
static int depth;
static bool interrupts, reads_amid, yields;
static struct ring_reader *reader;
static uint64_t last_time[2 * CPUS];
static unsigned char *found; /* by number of the event */

static uint64_t random_below(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

static void *bpf_map_lookup_elem(const void *map, const void *key)
{
    (void)key;
    return map == &rings ? (void *)array : (void *)&writers[cpu_now];
}

static uint32_t bpf_get_smp_processor_id(void)
{
    return cpu_now;
}

static uint64_t bpf_ktime_get_ns(void)
{
    interrupt();
    return __atomic_add_fetch(&now, 1, __ATOMIC_RELAXED);
}

static void write_event(uint32_t words)
{
    uint64_t event[WORDS_MAX];
    const uint64_t number = __atomic_fetch_add(&happened, 1, __ATOMIC_RELAXED);
    event[1] = number << 32 | (uint64_t)words << 16 | 7;
    for (uint32_t k = 2; k < words; k++)
        event[k] = number * 31 + k;
    if (shape.preemptible && number % 2) { /* as a probe does */
        ring_append(event, words);
        return;
    }
    struct kernel_ring_cpu *first;
    uint64_t *to = ring_begin(&first, words);
    if (!to)
        return;
    to[1] = event[1];
    interrupt();
    for (uint32_t k = 2; k < words; k++)
        to[k] = event[k];
    ring_end(first, words);
}

static void check_piece(const struct ring_piece *p, uint32_t ring, bool times)
{
    uint32_t at = 0, n = 0;
    bool bad;
    for (const struct ring_event *e; (e = ring_piece_event(p, &at, &bad)); n++) {
        const uint64_t *words = (const uint64_t *)e;
        assert_int_equal(e->id, 7);
        assert_true(e->thread < happened && e->thread < FOUND_BYTES);
        for (uint32_t k = 2; k < e->size; k++)
            assert_int_equal(words[k], (uint64_t)e->thread * 31 + k);
        assert_int_equal(found[e->thread]++, 0);
        assert_true(!times || e->ticks >= last_time[ring]);
        last_time[ring] = e->ticks;
    }
    assert_false(bad);
    assert_int_equal(n, p->n_events);
    seen += n;
    overwritten += p->overwritten;
}

static void read_all(bool times)
{
    struct ring_piece p;
    for (uint32_t ring = 0; ring < plan.rings; ring++)
        for (int got; (got = ring_reader_next(reader, ring, &p)) != 0;) {
            assert_int_equal(got, 1);
            check_piece(&p, ring, times);
            kernel_rings_took(&plan, array, ring, ring_reader_position(reader, ring));
        }
}

static void interrupt(void)
{
    if (yields) {
        static __thread uint32_t turn;
        if ((turn = turn * 1664525 + 1013904223) >> 24 == 0)
            sched_yield();
    }
    if (!interrupts || depth == DEEPEST)
        return;
    if (reads_amid && !random_below(400))
        read_all(true);
    if (random_below(12))
        return;
    depth++;
    /* Once in a while it writes more than a packet has room for, or than the ring. */
    const uint64_t much = random_below(3000);
    for (uint64_t n = much > 2 ? 1 : much ? 1500 : 6000; n; n--)
        write_event(2 + (uint32_t)random_below(WORDS_MAX - 1));
    depth--;
}

static void begin(bool overwrites, bool preemptible)
{
    kernel_rings_plan(&plan, CPUS, 4 * RING_PACKET_BYTES_MIN, overwrites);
    array = calloc(1, plan.mapped_bytes);
    found = calloc(1, FOUND_BYTES);
    assert_true(array && found);
    kernel_rings_begin(&plan, array);
    shape = (struct kernel_ring_shape){.cpus = CPUS,
                                       .overwrites = overwrites,
                                       .preemptible = preemptible,
                                       .packet_bytes = plan.packet_bytes,
                                       .ring_bytes = plan.ring_bytes,
                                       .read_at = plan.read_at,
                                       .data_at = plan.data_at};
    for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
        const uint64_t first = ring_first_head(plan.ring_bytes);
        writers[cpu] = (struct kernel_ring_writer){.reserved = first, .position = first};
    }
    memset(last_time, 0, sizeof(last_time));
    reader = ring_reader_new(array, plan.mapped_bytes);
    assert_non_null(reader);
    now = happened = seen = overwritten = 0;
    seed = 1;
}

static void end(bool times)
{
    uint64_t lost = 0;
    for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
        assert_int_equal(writers[cpu].writers, 0);
        assert_int_equal(kernel_rings_control(array, CPUS + cpu)->head, writers[cpu].reserved);
        assert_int_equal(ring_control(array, cpu)->busy, 0);
    }
    read_all(times);
    for (uint32_t ring = 0; ring <= plan.rings; ring++)
        for (int why = 0; why < RING_LOSSES; why++)
            lost += ring_reader_lost(reader, ring, (enum ring_loss)why);
    assert_true(seen > 0 && (lost > 0 || overwritten > 0));
    assert_int_equal(seen + overwritten + lost, happened);
    assert_true(shape.overwrites || !overwritten);
    ring_reader_free(reader);
    free(array);
    free(found);
}

static void interrupted(bool overwrites)
{
    begin(overwrites, false);
    interrupts = reads_amid = true;
    for (uint32_t i = 0; i < EVENTS; i++) {
        cpu_now = (uint32_t)random_below(CPUS);
        write_event(2 + (uint32_t)random_below(WORDS_MAX - 1));
        if (!random_below(500))
            read_all(true);
    }
    interrupts = reads_amid = false;
    end(true);
}

static void test_discard(void **state)
{
    (void)state;
    interrupted(false);
}

static void test_overwrite(void **state)
{
    (void)state;
    interrupted(true);
}

static void *write_many(void *arg)
{
    for (uint32_t i = 0; i < EVENTS; i++)
        write_event(2 + i % (WORDS_MAX - 1));
    __atomic_fetch_sub(&thread_count, 1, __ATOMIC_RELEASE);
    return arg;
}

static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    begin(false, true);
    cpu_now = 0;
    thread_count = THREADS;
    yields = true;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, NULL), 0);
    while (__atomic_load_n(&thread_count, __ATOMIC_ACQUIRE))
        read_all(false);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    yields = false;
    end(false);
}

/* A CPU that came after the rings were made has none. */
static void test_no_ring(void **state)
{
    (void)state;
    begin(false, false);
    cpu_now = CPUS - 1;
    write_event(3);
    cpu_now = CPUS;
    write_event(3);
    shape.preemptible = true;
    write_event(3);
    assert_int_equal(ring_reader_lost(reader, plan.rings, RING_LOST_NO_RING), 2);
    cpu_now = 0;
    end(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_discard),
        cmocka_unit_test(test_overwrite),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_no_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
