/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/event_rings.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/syscall.h"
#include "ring/ring_shared.h"
#include "tag/event_classes.h"
#include "tag/user_sums.h"
#include "target/agent_api.h"
#include "target/fork_placeholder.h"
#include "target/process_image.h"
#include "target/spin_wait.h"
#include "wire/ring_file.h"
#include "wire/headroom_lease.h"

#define CPUS_MOST    500u
#define PACKET_BYTES (64u << 10)
#define PACKETS      8u /* at least, in a ring */
#define RING_BYTES   (4u << 20)

/* The smallest ring, of packets of the smallest size. */
#define RING_LEAST_BYTES (64u << 10)

/* libc's registration for restartable sequences (2.35 and later). */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* Defined by the full agent. This weak symbol is NULL if that is not in the process. */
__attribute__((weak, visibility("default"))) bool allium_agent_trace(uint32_t version, uint64_t *event,
                                                                     uint32_t words);

static struct ring ring;
/* generation of the process << 2 | one of these */
enum { RINGS_MAKING = 1, RINGS_MADE, RINGS_FAILED };
static uint64_t rings_stage;
static uint64_t early_lost; /* before there were rings */
static uint64_t frozen_at;  /* the time that the stopped clock shows; 0: the clock runs */

static __thread struct {
    uint32_t generation, id; /* `id` is the thread's in this generation of the process */
    uint32_t writes;         /* it is in ring_append() */
    bool shares;             /* a child of vfork() writes as this thread, see event_vfork.c */
} self __attribute__((tls_model("initial-exec")));

static uint64_t stage_of(uint32_t stage)
{
    return (uint64_t)process.generation << 2 | stage;
}

static bool agent_traces(void)
{
    return allium_agent_trace && allium_agent_trace(AGENT_API_VERSION, NULL, 0);
}

static bool clock_is_steady(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8); /* the counter is invariant */
}

static uint64_t ticks(void)
{
    const uint64_t frozen = load_relaxed(&frozen_at);
    if (frozen)
        return frozen;
    return ring.is_tsc ? __builtin_ia32_rdtsc() : clock_ns(CLOCK_MONOTONIC);
}

static struct headroom_lease lease;

static bool reach(char *from, uint64_t bytes)
{
    return ledger_may_call(&process.ledger) && headroom_lease_take(&lease, process.ledger.dir, bytes) &&
           !ledger_back(from, bytes);
}

static bool make_rings(void)
{
    struct {
        uint64_t magic, read[CPUS_MOST + 1]; /* of the CPUs, and of the ring that threads share */
    } positions = {0};
    const uint32_t cpus = ring_file_cpus(CPUS_MOST);
    uint64_t each = RING_BYTES;
    while (each > RING_LEAST_BYTES && !headroom_has_space(ring_file_bytes(cpus, each)))
        each /= 2;
    uint64_t bytes = ring_file_bytes(cpus, each);
    char *map = ring_file_map_fitting(&process.ledger, &process.config, LEDGER_RING_SUFFIX, &bytes,
                                      ring_file_bytes(cpus, RING_LEAST_BYTES));
    if (bytes != ring_file_bytes(cpus, each))
        each = RING_LEAST_BYTES;
    if (!map || ledger_back(map, bytes - (cpus + 1ull) * each))
        return false;
    lease = (struct headroom_lease){0};
    ring_begin_positions((struct ring_positions *)&positions, cpus, each);
    ring = (struct ring){.is_tsc = clock_is_steady(), .ticks = ticks, .reach = reach};
    ring.read =
        (const struct ring_positions *)ring_file_map(&process.ledger, &process.config, LEDGER_READ_SUFFIX,
                                                     LEDGER_PAGE_BYTES, &positions, sizeof(positions));
    if (!ring.read)
        return false;
    struct ring_header *header = (struct ring_header *)map;
    header->image_id = process.config.image_id;
    header->clock = ring.is_tsc ? RING_CLOCK_TSC : RING_CLOCK_MONOTONIC;
    ring_begin(&ring, header, cpus, each / PACKETS < PACKET_BYTES ? each / PACKETS : PACKET_BYTES, each,
               &__rseq_size && __rseq_size ? __rseq_offset : 0);
    return true;
}

/* Makes the table and the rings of this image. Only one thread does; the others get the stage RINGS_MAKING. */
static uint64_t make(void)
{
    uint64_t mask, before = load_acquire(&rings_stage);
    const bool blocked = process_block_signals(&mask);
    if (before >> 2 != process.generation && atomic_swap_if64(&rings_stage, before, stage_of(RINGS_MAKING))) {
        const bool made = ledger_may_call(&process.ledger) && event_classes_begin() &&
                          (user_sums_are_on() ? user_sums_make() : agent_traces() || make_rings());
        store_release(&rings_stage, stage_of(made ? RINGS_MADE : RINGS_FAILED));
        if (made && user_sums_are_on())
            user_sums_lose(__atomic_exchange_n(&early_lost, 0, __ATOMIC_RELAXED));
        else if (made && !agent_traces())
            for (uint64_t n = __atomic_exchange_n(&early_lost, 0, __ATOMIC_RELAXED); n; n--)
                ring_count_lost(&ring, RING_LOST_NO_RING);
    }
    if (blocked)
        process_unblock_signals(mask);
    return load_acquire(&rings_stage);
}

/* The maker blocks all signals, so its handlers never wait here. If it could not (seccomp), the wait ends. */
static uint64_t wait_for_maker(void)
{
    struct spin_wait w = {0};
    while (load_acquire(&rings_stage) == stage_of(RINGS_MAKING) && !load_relaxed(&process.ledger.sealed) &&
           spin_wait_turn(&w, true))
        ;
    return load_acquire(&rings_stage);
}

bool event_rings_open(void)
{
    uint64_t stage = load_acquire(&rings_stage);
    if (unlikely(stage >> 2 != process.generation))
        stage = make();
    if (unlikely(stage == stage_of(RINGS_MAKING)))
        stage = wait_for_maker();
    return stage == stage_of(RINGS_MADE);
}

void event_rings_prepare(void)
{
    if (agent_traces())
        event_rings_open();
}

bool event_rings_freeze(void)
{
    if (frozen_at)
        return false;
    store_relaxed(&frozen_at, ticks());
    return true;
}

void event_rings_thaw(void)
{
    store_relaxed(&frozen_at, 0);
}

void event_rings_lose(void)
{
    const bool made = load_acquire(&rings_stage) == stage_of(RINGS_MADE);
    if (made && user_sums_are_on())
        user_sums_lose(1);
    else if (made && !agent_traces())
        ring_count_lost(&ring, RING_LOST_NO_RING);
    else
        atomic_add64(&early_lost, 1);
}

uint32_t event_rings_thread(void)
{
    if (likely(self.generation == process.generation))
        return self.id;
    if (!ledger_may_call(&process.ledger))
        return 0;
    self.id = (uint32_t)sys_call(SYS_gettid, 0);
    self.generation = process.generation;
    return self.id;
}

bool event_rings_share(bool now)
{
    const bool before = self.shares;
    self.shares = now;
    return before;
}

/* The full agent's vfork() is the one that is called, if there is one. */
static bool shares(void)
{
    return self.shares ||
           (allium_agent_trace && allium_agent_trace(AGENT_API_VERSION, NULL, AGENT_API_ASKS_CHILD));
}

void event_rings_append(uint64_t *event, uint32_t words)
{
    if (allium_agent_trace && allium_agent_trace(AGENT_API_VERSION, event, words))
        return;
    event[1] |= (uint64_t)event_rings_thread() << 32;
    self.writes++;
    if (unlikely(shares()))
        ring_shared_append(&ring, event, words);
    else if (!ring.is_hot || load_relaxed(&frozen_at) ||
             sequence_append(&ring.at, ring.at.area, event, words) != SEQUENCE_DONE)
        ring_append(&ring, event, words);
    self.writes--;
}

void event_rings_before_fork(unsigned part)
{
    const bool writes = self.writes && ring.header;
    if (user_sums_are_on())
        return user_sums_before_fork(part);
    fork_placeholder_note(part, ring.header,
                          writes ? ring_file_bytes(ring.header->cpus, ring.header->ring_bytes) : 0);
    fork_placeholder_note(part + 1, ring.read, writes ? LEDGER_PAGE_BYTES : 0);
}
