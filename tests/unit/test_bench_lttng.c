/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/hooks/lttng/bench_lttng.h"

#define HEADER_BYTES 84u
#define PACKET_BYTES 4096u
#define PAYLOAD      16u

static void put(unsigned char *packet, size_t at, uint64_t word)
{
    memcpy(packet + at, &word, sizeof(word));
}

/* A packet of so many events; each third has a large header. Returns the bytes of its content. */
static size_t make(unsigned char *packet, unsigned events, uint64_t discarded)
{
    static const unsigned char magic[] = {0xc1, 0x1f, 0xfc, 0xc1};
    size_t at = HEADER_BYTES;
    memset(packet, 0, PACKET_BYTES);
    memcpy(packet, magic, sizeof(magic));
    for (unsigned i = 0; i < events; i++) {
        const bool is_extended = i % 3 == 2;
        memset(packet + at, is_extended ? 0xff : 0, 2);
        at += (is_extended ? 14 : 6) + PAYLOAD;
    }
    put(packet, 48, at * 8);
    put(packet, 56, PACKET_BYTES * 8);
    put(packet, 72, discarded);
    return at;
}

static void events_and_losses_are_counted(void **state)
{
    unsigned char packet[PACKET_BYTES];
    struct bench_lttng_counts c = {.events = 0};
    (void)state;
    const size_t content = make(packet, 100, 7);
    assert_int_equal(bench_lttng_trace_packet(&c, packet, sizeof(packet), PAYLOAD), PACKET_BYTES);
    assert_true(c.events == 100 && c.bytes == content - HEADER_BYTES && c.discarded == 7 && !c.is_odd);
    make(packet, 0, 9);
    assert_int_equal(bench_lttng_trace_packet(&c, packet, sizeof(packet), PAYLOAD), PACKET_BYTES);
    assert_true(c.events == 100 && c.discarded == 9 && !c.is_odd);
}

static void a_part_of_a_packet_is_none(void **state)
{
    unsigned char packet[PACKET_BYTES];
    (void)state;
    make(packet, 100, 7);
    for (size_t len = 0; len < sizeof(packet); len++) {
        struct bench_lttng_counts c = {.events = 0};
        unsigned char *cut = malloc(len + !len); /* so that sanitizers see what is read behind it */
        memcpy(cut, packet, len);
        assert_int_equal(bench_lttng_trace_packet(&c, cut, len, PAYLOAD), 0);
        assert_true(!c.events && !c.is_odd);
        free(cut);
    }
}

static void other_bytes_are_odd(void **state)
{
    unsigned char packet[PACKET_BYTES];
    struct bench_lttng_counts c = {.events = 0};
    (void)state;
    const size_t content = make(packet, 100, 0);
    assert_int_equal(bench_lttng_trace_packet(&c, packet, sizeof(packet), PAYLOAD + 1), 0);
    assert_true(c.is_odd && !c.events);
    static const uint64_t bad[] = {0, HEADER_BYTES - 1, PACKET_BYTES + 1, UINT64_MAX / 8};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        c = (struct bench_lttng_counts){.events = 0};
        put(packet, 48, bad[i] * 8);
        assert_int_equal(bench_lttng_trace_packet(&c, packet, sizeof(packet), PAYLOAD), 0);
        assert_true(c.is_odd && !c.events);
    }
    c = (struct bench_lttng_counts){.events = 0};
    put(packet, 48, (content - 1) * 8);
    assert_int_equal(bench_lttng_trace_packet(&c, packet, sizeof(packet), PAYLOAD), 0);
    assert_true(c.is_odd);
    packet[0] ^= 1;
    c.is_odd = false;
    assert_int_equal(bench_lttng_trace_packet(&c, packet, sizeof(packet), PAYLOAD), 0);
    assert_true(c.is_odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_and_losses_are_counted),
        cmocka_unit_test(a_part_of_a_packet_is_none),
        cmocka_unit_test(other_bytes_are_odd),
    };
    return cmocka_run_group_tests_name("bench_lttng", tests, NULL, NULL);
}
