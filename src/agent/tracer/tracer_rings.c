/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer_rings.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "agent/clock.h"
#include "agent/process.h"
#include "agent/tracer/tracer.h"
#include "agent/tracer/tracer_clock.h"
#include "agent/tracer/tracer_life.h"
#include "agent/tracer/tracer_options.h"
#include "agent/tracer/tracer_size.h"
#include "agent/tracer/tracer_sum.h"
#include "agent/tracer/tracer_untimed.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"
#include "target/fork_placeholder.h"
#include "wire/headroom.h"
#include "wire/ring_file.h"

#define PACKET_BYTES (64u << 10)
#define PACKETS      8u /* at least, in a ring */

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* libc's registration for restartable sequences (2.35 and later). */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

struct tracer_hot tracer_hot __attribute__((aligned(LEDGER_PAGE_BYTES)));
struct ring tracer_ring;
static uint32_t ring_generation; /* of the process that has made the rings; 0: none has */

bool tracer_rings_begin(void)
{
    tracer_options_read();
    tracer_size_begin();
    return !sys_call(SYS_madvise, &tracer_hot, sizeof(tracer_hot), MADV_WIPEONFORK);
}

bool tracer_rings_made(void)
{
    /* before process_update() of a fork child, both are the parent's, whose rings are not mapped here */
    return process_is_current() && load_acquire(&ring_generation) == process.generation;
}

ptrdiff_t tracer_rings_area(void)
{
    return &__rseq_size && __rseq_size ? __rseq_offset : 0;
}

void tracer_before_fork(void)
{
    const bool writes = tracer_on && thread_self.reentry_depth && tracer_rings_made();
    const struct ring *r = &tracer_ring;
    fork_placeholder_note(PART_RINGS, r->header,
                          writes ? ring_file_bytes(r->header->cpus, r->header->ring_bytes) : 0);
    tracer_sum_before_fork();
}

static bool reach(char *from, uint64_t bytes)
{
    return ledger_may_call(&process.ledger) && tracer_may_grow(bytes) && !ledger_back(from, bytes);
}

static void begin_header(struct ring_header *h, bool overwrites)
{
    h->overwrites = overwrites;
    h->begins = tracer_options.begins;
    h->clock = tracer_clock();
    h->image_id = process.config.image_id;
    h->pid = process.pid;
    h->parent_pid = process.parent_pid;
    const bool has_ticks = ring_clock_has_ticks(h->clock);
    h->began_ticks = has_ticks                          ? process.began_ticks
                     : h->clock == RING_CLOCK_MONOTONIC ? tracer_clock_ticks()
                                                        : 0;
    h->parent_image_id = process.parent_image_id;
    h->forked_ticks = has_ticks || !process.forked_ticks ? process.forked_ticks : h->began_ticks;
}

/* Lets the hot functions see the new rings, and counts what came before them. */
static void publish(void)
{
    const struct sequence_rings at = tracer_ring.at;
    struct sequence_rings *to = &tracer_hot.rings;
    struct ring_cpu *shared = (struct ring_cpu *)at.control + tracer_ring.header->cpus;
    *to =
        (struct sequence_rings){0, at.cpus, at.control, at.data, at.ring_bytes, at.packet_mask, at.ring_mask};
    tracer_untimed_publish();
    store_release(&to->area, tracer_ring.is_hot ? at.area : 0);
    atomic_add64(&shared->lost[RING_LOST_NO_RING],
                 __atomic_exchange_n(&tracer_hot.early_lost, 0, __ATOMIC_RELAXED));
    store_release(&ring_generation, process.generation);
}

/* Maps the file of rings. Sets *ring_bytes to what they have. NULL: that failed. */
static char *map_rings(uint32_t cpus, uint64_t *ring_bytes)
{
    uint64_t each = tracer_ring_bytes(cpus);
    char *map = NULL;
    for (; !map && each >= TRACER_RING_LEAST_BYTES;
         each /= 2) { /* RLIMIT_FSIZE or RLIMIT_AS may be smaller */
        map =
            ring_file_map(&process.ledger, &process.config, LEDGER_RING_SUFFIX, ring_file_bytes(cpus, each));
        *ring_bytes = each;
    }
    if (!map)
        return NULL;
    const uint64_t bytes = ring_file_bytes(cpus, *ring_bytes);
    headroom_take_space(bytes, 0);
    return ledger_back(map, bytes - (cpus + 1ull) * *ring_bytes) ? NULL : map;
}

void tracer_begin_ledger(void)
{
    tracer_forget_sites();
    if (tracer_sum_on)
        return tracer_sum_begin_ledger();
    process.ledger.header->events_have_stacks = tracer_options.stacks == TRACER_STACKS_FULL;
    const bool overwrites = process.config.sites & LEDGER_WITH_FLIGHT;
    const uint32_t cpus = tracer_size_cpus();
    uint64_t bytes;
    char *map = map_rings(cpus, &bytes);
    if (!map)
        return;
    begin_header((struct ring_header *)map, overwrites);
    tracer_ring = (struct ring){
        .is_tsc = tracer_clock() == RING_CLOCK_TSC, .ticks = tracer_clock_ticks, .reach = reach};
    if (!overwrites)
        ring_begin_reader(&tracer_ring, (struct ring_header *)map, cpus, bytes);
    ring_begin(&tracer_ring, (struct ring_header *)map, cpus,
               bytes / PACKETS < PACKET_BYTES ? bytes / PACKETS : PACKET_BYTES, bytes, tracer_rings_area());
    tracer_clock_begin();
    publish();
    tracer_life_process_begins();
}
