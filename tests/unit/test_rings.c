/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings of events, written and read by one thread: positions and counts that wrap, a flight recorder that is read
 * late, positions and headers that are not as they should be.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>

#include <cmocka.h>

#include "ring/ring_read.h"
#include "ring/ring_write.h"

#define CPUS   64u
#define PACKET RING_PACKET_BYTES_MIN
#define RING   (4u * PACKET)

struct rings {
    struct ring ring;
    struct ring_header *file;
    struct ring_positions *positions;
    uint64_t bytes, made;
};

static uint64_t now;

static uint64_t ticks(void)
{
    return ++now;
}

static bool reach(char *from, uint64_t bytes)
{
    (void)from;
    (void)bytes;
    return true;
}

static struct ring_cpu *control(const struct rings *r)
{
    return (struct ring_cpu *)(r->file + 1);
}

static struct rings begin(bool overwrites)
{
    struct rings r = {.bytes = ring_file_bytes(CPUS, RING)};
    r.file = mmap(NULL, r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(r.file != MAP_FAILED);
    r.positions = calloc(1, sizeof(*r.positions) + (CPUS + 1) * sizeof(uint64_t));
    ring_begin_positions(r.positions, CPUS, RING);
    r.ring = (struct ring){.ticks = ticks, .reach = reach, .read = overwrites ? NULL : r.positions};
    r.file->overwrites = overwrites;
    ring_begin(&r.ring, r.file, CPUS, PACKET, RING, __rseq_size ? __rseq_offset : 0);
    return r;
}

static void end(struct rings *r)
{
    munmap(r->file, r->bytes);
    free(r->positions);
}

static void write_events(struct rings *r, unsigned n)
{
    for (; n; n--, r->made++) {
        uint64_t event[] = {0, ring_what(1, 4, 7), r->made, ~r->made};
        ring_append(&r->ring, event, 4);
    }
}

struct found {
    uint64_t events, overwritten, bad, next; /* the number of the next event on this ring */
};

/* Reads what is new. The events of one writer that stays on its CPU have numbers that follow each other. */
static void read_new(const struct rings *r, struct ring_reader *reader, struct found *f)
{
    struct ring_piece p;
    for (uint32_t cpu = 0; cpu < ring_reader_rings(reader); cpu++) {
        for (int found; (found = ring_reader_next(reader, cpu, &p)) != 0;) {
            uint32_t at = 0;
            bool bad;
            f->bad += found < 0;
            f->overwritten += found > 0 ? p.overwritten : 0;
            for (const struct ring_event *e; found > 0 && (e = ring_piece_event(&p, &at, &bad));
                 f->events++) {
                const uint64_t *w = (const uint64_t *)e;
                assert_true(w[2] < r->made && w[3] == ~w[2]);
            }
        }
        r->positions->read[cpu] = ring_reader_position(reader, cpu);
    }
}

static uint64_t lost(const struct rings *r)
{
    uint64_t n = 0;
    for (uint32_t cpu = 0; cpu <= CPUS; cpu++)
        for (int why = 0; why < RING_LOSSES; why++)
            n += control(r)[cpu].lost[why];
    return n;
}

/* Moves all heads ahead by whole rings of words, and their counts by `events`, as if so much had been written. */
static void pretend(struct rings *r, uint64_t words, uint64_t events)
{
    for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
        struct ring_cpu *c = &control(r)[cpu];
        if (c->head == ring_first_head(RING))
            continue;
        const uint64_t position = (ring_position(c->head) + words) & RING_POSITION_MASK;
        char *base = (char *)r->file + r->file->data_at + (uint64_t)cpu * RING;
        struct ring_packet *p = (struct ring_packet *)(base + position * 8 % RING / PACKET * PACKET);
        assert_true(p->magic == RING_PACKET_MAGIC);
        p->events_before += events;
        c->head = (c->head & ~RING_POSITION_MASK) + events * RING_COUNT_ONE;
        c->head |= position;
        r->positions->read[cpu] = (r->positions->read[cpu] + words) & RING_POSITION_MASK;
    }
}

/* A flight recorder that has been written for long is read for the first time: any position may be the oldest. */
static void late_reader(void **state)
{
    for (uint64_t laps = 1; laps < UINT64_C(1) << 23; laps = laps * 5 + 3) {
        struct rings r = begin(true);
        write_events(&r, 3);
        pretend(&r, laps * (RING / 8), 1000);
        write_events(&r, 20000);
        struct ring_reader *reader = ring_reader_new(r.file, r.bytes);
        struct found f = {0};
        read_new(&r, reader, &f);
        assert_int_equal(f.bad, 0);
        assert_true(f.events >= 2 * (PACKET / 32 - 4) && f.events <= RING / 32);
        if (control(&r)[CPUS].head == 0) /* it was on one CPU, and had registered sequences */
            assert_true(f.events + f.overwritten >= r.made);
        ring_reader_free(reader);
        end(&r);
    }
    (void)state;
}

/* Positions wrap at 2^36 words, and counts at 2^28 events: nothing of what comes before and after is missing. */
static void wrap(void **state)
{
    for (int overwrites = 0; overwrites < 2; overwrites++) {
        struct rings r = begin(overwrites);
        struct found f = {0};
        write_events(&r, 3);
        pretend(&r, (UINT64_C(1) << 36) - RING / 8 * 2, (UINT64_C(1) << 28) - 5);
        struct ring_reader *reader = ring_reader_new(r.file, r.bytes);
        read_new(&r, reader, &f);
        f.overwritten = 0; /* those that never were */
        for (int k = 0; k < 300; k++) {
            write_events(&r, 100);
            read_new(&r, reader, &f);
        }
        assert_int_equal(f.bad, 0);
        assert_int_equal(f.events + f.overwritten % (UINT64_C(1) << 28) + lost(&r), r.made);
        ring_reader_free(reader);
        end(&r);
    }
    (void)state;
}

/* A packet has the losses that its CPU had when the packet began. */
static void losses_are_told(void **state)
{
    struct rings r = begin(false);
    struct ring_reader *reader = ring_reader_new(r.file, r.bytes);
    struct found f = {0};
    struct ring_piece p;
    cpu_set_t before_it, one;
    assert_int_equal(sched_getaffinity(0, sizeof(before_it), &before_it), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    for (int round = 0; round < 5; round++) {
        const uint64_t before = lost(&r);
        write_events(&r, 10000);
        assert_true(lost(&r) > before);
        read_new(&r, reader, &f);
        write_events(&r, 10); /* in a packet of their own */
        for (uint32_t cpu = 0; cpu <= CPUS; cpu++) {
            while (ring_reader_next(reader, cpu, &p))
                if (p.n_words)
                    assert_memory_equal(p.lost, control(&r)[cpu].lost, sizeof(p.lost));
            r.positions->read[cpu] = ring_reader_position(reader, cpu);
        }
    }
    sched_setaffinity(0, sizeof(before_it), &before_it);
    ring_reader_free(reader);
    end(&r);
    (void)state;
}

static uint64_t random_word(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *seed >> 11 >> (*seed % 50);
}

/* Wrong positions in the reader's file cost events: each is read, overwritten, or counted as lost, and nothing else in
 * memory changes. */
static void hostile_positions(void **state)
{
    uint64_t seed = 1;
    struct rings r = begin(false);
    struct ring_reader *reader = ring_reader_new(r.file, r.bytes);
    struct found f = {0};
    uint64_t outside = 0;
    for (int round = 0; round < 3000; round++) {
        for (uint32_t cpu = 0; cpu <= CPUS; cpu++)
            r.positions->read[cpu] = random_word(&seed);
        write_events(&r, 50);
        if (round % 3 == 0)
            read_new(&r, reader, &f);
    }
    read_new(&r, reader, &f);
    assert_int_equal(f.events + f.overwritten + lost(&r), r.made);
    assert_int_equal(f.bad, 0);
    for (const char *at = (const char *)(control(&r) + CPUS + 1); at < (char *)r.file + r.file->data_at; at++)
        outside += *at != 0;
    assert_int_equal(outside, 0);
    ring_reader_free(reader);
    end(&r);
    (void)state;
}

static void bad_headers(void **state)
{
    static const struct {
        size_t at, bytes;
        uint64_t value;
    } changes[] = {
#define FIELD(name, value)                                                                                   \
    {offsetof(struct ring_header, name), sizeof(((struct ring_header *)0)->name), value}
        FIELD(magic, 0),
        FIELD(version, RING_VERSION + 1),
        FIELD(cpus, 0),
        FIELD(cpus, RING_CPUS_MAX + 1),
        FIELD(cpus, CPUS + 1),
        FIELD(cpus, UINT32_MAX),
        FIELD(packet_bytes, 0),
        FIELD(packet_bytes, 4096),
        FIELD(packet_bytes, PACKET + 8),
        FIELD(packet_bytes, RING / 2),
        FIELD(packet_bytes, UINT64_C(1) << 62),
        FIELD(packet_bytes, UINT64_C(1) << 63),
        FIELD(ring_bytes, 0),
        FIELD(ring_bytes, RING / 2),
        FIELD(ring_bytes, RING * 2),
        FIELD(ring_bytes, RING - 1),
        FIELD(ring_bytes, UINT64_C(1) << 63),
        FIELD(data_at, 0),
        FIELD(data_at, 8),
        FIELD(data_at, 12289),
        FIELD(data_at, UINT64_MAX),
        FIELD(data_at, UINT64_MAX - 7),
#undef FIELD
    };
    struct rings r = begin(false);
    struct ring_reader *reader = ring_reader_new(r.file, r.bytes);
    assert_non_null(reader);
    ring_reader_free(reader);
    assert_null(ring_reader_new(r.file, r.bytes - 1));
    assert_null(ring_reader_new(r.file, 0));
    for (size_t k = 0; k < sizeof(changes) / sizeof(*changes); k++) {
        const struct ring_header was = *r.file;
        memcpy((char *)r.file + changes[k].at, &changes[k].value, changes[k].bytes);
        if (ring_reader_new(r.file, r.bytes))
            fail_msg("header %zu is taken", k);
        *r.file = was;
    }
    end(&r);
    (void)state;
}

/* Heads and packets that are none: the reader says so, goes on behind them, and finds what is written then. */
static void bad_heads(void **state)
{
    uint64_t seed = 7;
    for (int round = 0; round < 500; round++) {
        struct rings r = begin(round % 2);
        struct ring_reader *reader = ring_reader_new(r.file, r.bytes);
        struct found f = {0};
        write_events(&r, 700);
        for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
            const uint64_t head = control(&r)[cpu].head;
            uint64_t *data = (uint64_t *)((char *)r.file + r.file->data_at + (uint64_t)cpu * RING);
            if (head == ring_first_head(RING))
                continue;
            if (round % 4 < 2)
                control(&r)[cpu].head = random_word(&seed);
            else
                data[random_word(&seed) % 2 * (PACKET / 8) + random_word(&seed) % RING_PACKET_WORDS] =
                    random_word(&seed);
        }
        struct ring_piece p;
        for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
            int calls = 0;
            while (ring_reader_next(reader, cpu, &p))
                assert_true(calls++ < 100 && p.n_words <= PACKET / 8);
        }
        ring_reader_free(reader);
        end(&r);
        (void)f;
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_reader),       cmocka_unit_test(wrap),        cmocka_unit_test(losses_are_told),
        cmocka_unit_test(hostile_positions), cmocka_unit_test(bad_headers), cmocka_unit_test(bad_heads),
    };
    return cmocka_run_group_tests_name("rings", tests, NULL, NULL);
}
