/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/hooks/bench_reader.h"

#include <pthread.h>
#include <unistd.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/clock_ns.h"
#include "ring/ring_read.h"

#define POLL_US 100u /* a tenth of the tool's shortest wait: there is no other work between hits */
#define WAIT_NS UINT64_C(10000000000)

static struct ring_reader *reader;
static struct ring_positions *positions;
static uint64_t seen;

static void read_ring(uint32_t ring)
{
    struct ring_piece piece;
    for (int found = 1; found == 1;) {
        found = ring_reader_next(reader, ring, &piece);
        store_release(&positions->read[ring], ring_reader_position(reader, ring));
        if (found == 1)
            store_relaxed(&seen, seen + piece.n_events);
    }
}

static void *work(void *arg)
{
    for (;;) {
        for (uint32_t ring = 0; ring < ring_reader_rings(reader); ring++)
            read_ring(ring);
        usleep(POLL_US);
    }
    return arg;
}

bool bench_reader_start(const void *file, uint64_t bytes, struct ring_positions *to)
{
    pthread_t thread;
    reader = ring_reader_new(file, bytes);
    positions = to;
    return reader && !pthread_create(&thread, NULL, work, NULL) && !pthread_detach(thread);
}

void bench_reader_wait(uint64_t events)
{
    const uint64_t until = clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
    while (load_relaxed(&seen) < events && clock_ns(CLOCK_MONOTONIC) < until)
        usleep(POLL_US);
}

uint64_t bench_reader_events(void)
{
    return load_relaxed(&seen);
}
