/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/hooks/lttng/bench_lttng.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "bench/hooks/bench_library.h"
#include "bench/hooks/bench_mechanism.h"
#include "bench/hooks/bench_room.h"

#define LIBRARY      "allium-bench-lttng.so"
#define FIELDS_BYTES 16u                   /* two addresses */
#define SETTLE_NS    UINT64_C(10000000000) /* the consumer daemon must have written all until then */
#define STEP_US      500u

static void (*library_hit)(void *function, void *caller);
static void (*library_hit_payload)(void *function, void *caller, const char *payload, unsigned bytes);
static int (*is_recorded)(void);
static struct bench_lttng_counts counts;

/* The library is too far away for the jump that calls a sink: this jump is another one, as it is in a PLT. */
void bench_lttng_hit_event(void *function, void *caller)
{
    if (bench_payload_bytes)
        library_hit_payload(function, caller, bench_payload, bench_payload_bytes);
    else
        library_hit(function, caller);
}

const char *bench_lttng_begin(unsigned threads)
{
    void *library;
    (void)threads;
    const char *why = bench_lttng_daemon_start();
    if (why)
        return why;
    switch (bench_library_open(LIBRARY, &library)) { /* returns when the daemon knows this program */
    case 0:
        break;
    case -ENOENT:
        return "allium was built without LTTng-UST: install liblttng-ust-dev, and build it anew";
    default:
        return "liblttng-ust cannot be loaded: install liblttng-ust1";
    }
    is_recorded = (int (*)(void))dlsym(library, "bench_lttng_is_on");
    library_hit = (void (*)(void *, void *))dlsym(library, "bench_lttng_hit");
    library_hit_payload =
        (void (*)(void *, void *, const char *, unsigned))dlsym(library, "bench_lttng_hit_payload");
    if (!is_recorded || !library_hit_payload || !library_hit)
        return LIBRARY " is of another version: reinstall allium";
    return is_recorded()
               ? NULL
               : "LTTng does not record the event of this program: see `lttng-sessiond --no-kernel -vvv`";
}

/* Recording is stopped meanwhile, so that parts of sub-buffers are written as well. */
void bench_lttng_settle(uint64_t hits)
{
    if (!bench_lttng_daemon_record(false))
        return;
    const size_t bytes = FIELDS_BYTES + (bench_payload_bytes ? sizeof(uint16_t) + bench_payload_bytes : 0);
    const uint64_t until = clock_ns(CLOCK_MONOTONIC) + SETTLE_NS;
    do {
        bench_lttng_trace_read(&counts, BENCH_ROOM_FOLDER, bytes);
        if (counts.is_odd || counts.events + counts.discarded >= hits)
            break;
        usleep(STEP_US);
    } while (clock_ns(CLOCK_MONOTONIC) < until);
    bench_lttng_daemon_record(true);
}

uint64_t bench_lttng_hits(void)
{
    return counts.events;
}

uint64_t bench_lttng_lost(void)
{
    return counts.discarded;
}

uint64_t bench_lttng_bytes(void)
{
    return counts.bytes;
}

bool bench_lttng_set(uint32_t sites, bool on)
{
    if (sites != 1)
        return false;
    bench_lttng_daemon_enable(on);
    return !is_recorded() == !on;
}
