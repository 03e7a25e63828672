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
#include "tag/event_hot.h"
#include "tag/user_sums.h"
#include "target/agent_api.h"
#include "target/fork_placeholder.h"
#include "target/process_image.h"
#include "target/rseq_thread.h"
#include "target/spin_wait.h"
#include "wire/ring_file.h"
#include "wire/headroom_lease.h"

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
static uint64_t frozen_ns;  /* the same by CLOCK_MONOTONIC */

static __thread uint32_t writes
    __attribute__((tls_model("initial-exec"))); /* the thread is in ring_append() */

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

static ptrdiff_t area_of_threads(void)
{
    return &__rseq_size && __rseq_size ? __rseq_offset : 0;
}

int16_t event_rings_area(void)
{
    const ptrdiff_t area = area_of_threads();
    return area == (int16_t)area ? (int16_t)area : 0;
}

static bool make_rings(void)
{
    const uint32_t cpus = ring_file_cpus();
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
    ring = (struct ring){.is_tsc = clock_is_steady(), .ticks = ticks, .reach = reach};
    struct ring_header *header = (struct ring_header *)map;
    ring_begin_reader(&ring, header, cpus, each);
    header->image_id = process.config.image_id;
    header->clock = ring.is_tsc ? RING_CLOCK_TSC : RING_CLOCK_MONOTONIC;
    ring_begin(&ring, header, cpus, each / PACKETS < PACKET_BYTES ? each / PACKETS : PACKET_BYTES, each,
               area_of_threads());
    return true;
}

/* Opens the short way into the library's own rings, or into the agent's: the agent tells where they are. */
static void open_hot(void)
{
    struct agent_api_rings theirs;
    if (!agent_traces()) {
        if (ring.is_hot)
            event_hot_open(&(struct event_hot_rings){.at = ring.at});
        return;
    }
    if (allium_agent_trace(AGENT_API_VERSION, (uint64_t *)&theirs, AGENT_API_ASKS_RINGS))
        event_hot_open(&(struct event_hot_rings){.at = *theirs.rings,
                                                 .control = &process.ledger.control->word,
                                                 .clock_is_tsc = theirs.clock_is_tsc});
}

/* Makes the table and the rings of this image. Only one thread does; the others get the stage RINGS_MAKING. */
static uint64_t make(void)
{
    uint64_t mask, before = load_acquire(&rings_stage);
    const bool blocked = process_block_signals(&mask);
    if (before >> 2 != process.generation && atomic_swap_if64(&rings_stage, before, stage_of(RINGS_MAKING))) {
        const bool made = ledger_may_call(&process.ledger) && event_classes_begin() &&
                          (user_sums_are_on() ? user_sums_make() : agent_traces() || make_rings());
        if (made && !user_sums_are_on() && blocked)
            open_hot();
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

uint64_t event_rings_ns(void)
{
    return load_relaxed(&frozen_at) ? load_relaxed(&frozen_ns) : clock_ns(CLOCK_MONOTONIC);
}

bool event_rings_freeze(void)
{
    if (frozen_at)
        return false;
    store_relaxed(&frozen_ns, clock_ns(CLOCK_MONOTONIC));
    store_relaxed(&frozen_at, ticks());
    event_hot_stop(true);
    return true;
}

void event_rings_thaw(void)
{
    store_relaxed(&frozen_at, 0);
    event_hot_stop(false);
}

void event_rings_lose(void)
{
    /* before process_update() of a fork child, the stage is the parent's, whose rings are not mapped here */
    const bool made = process_is_current() && load_acquire(&rings_stage) == stage_of(RINGS_MADE);
    if (made) /* marks a thread that must not count by a sequence */
        event_rings_thread();
    if (made && user_sums_are_on())
        user_sums_lose(1);
    else if (agent_traces())
        allium_agent_trace(AGENT_API_VERSION, NULL, AGENT_API_LOST);
    else if (made && (event_hot_thread & EVENT_HOT_SHARES))
        ring_shared_count_lost(&ring, RING_LOST_NO_RING);
    else if (made)
        ring_count_lost(&ring, RING_LOST_NO_RING);
    else
        atomic_add64(&early_lost, 1);
}

/*
 * If a vfork child forks, EVENT_HOT_SHARES stays set in its child: the kernel does not abort the sequences of that
 * process, either. If there is a full agent, the program calls the agent's vfork() and clone(). So the agent is asked
 * whether the thread runs in a child of theirs.
 */
static void know_thread(void)
{
    const uint32_t id = (uint32_t)sys_call(SYS_gettid, 0);
    const bool shares =
        (event_hot_thread & EVENT_HOT_SHARES) || !rseq_thread_is_registered(area_of_threads()) ||
        (allium_agent_trace && allium_agent_trace(AGENT_API_VERSION, NULL, AGENT_API_ASKS_CHILD));
    event_hot_thread = (uint64_t)process.generation << 32 | id | (shares ? EVENT_HOT_SHARES : 0);
}

static bool is_thread_known(void)
{
    return (event_hot_thread & ~EVENT_HOT_SHARES) >> 32 == process.generation;
}

uint32_t event_rings_thread(void)
{
    if (unlikely(!is_thread_known())) {
        if (!ledger_may_call(&process.ledger))
            return 0;
        know_thread();
    }
    return (uint32_t)event_hot_thread;
}

#define CHILD_SHARED 1u /* the thread's events went into the shared ring before */
#define CHILD_KNEW   2u /* its number was known */

unsigned event_rings_child_begins(void)
{
    const bool known = process_is_current() && event_rings_thread();
    const bool shared = event_hot_thread & EVENT_HOT_SHARES;
    event_hot_thread |= EVENT_HOT_SHARES;
    return (known ? CHILD_KNEW : 0) | (shared ? CHILD_SHARED : 0);
}

void event_rings_child_ended(unsigned before)
{
    if (!(before & CHILD_KNEW)) /* the child may have stored its own number */
        event_hot_thread = 0;
    event_hot_thread =
        (event_hot_thread & ~EVENT_HOT_SHARES) | (before & CHILD_SHARED ? EVENT_HOT_SHARES : 0);
}

void event_rings_append(enum sequence_result before, uint64_t *event, uint32_t words)
{
    const uint32_t thread = event_rings_thread();
    const uint32_t aborted = before == SEQUENCE_ABORTED ? AGENT_API_ABORTED : 0;
    if (allium_agent_trace && allium_agent_trace(AGENT_API_VERSION, event, words | aborted))
        return;
    event[1] |= (uint64_t)thread << 32;
    writes++;
    if (unlikely(event_hot_thread & EVENT_HOT_SHARES))
        ring_shared_append(&ring, event, words);
    else
        ring_append_cold(&ring, before, event, words);
    writes--;
}

void event_rings_before_fork(unsigned part)
{
    const bool at_work = writes && ring.header;
    if (user_sums_are_on())
        return user_sums_before_fork(part);
    fork_placeholder_note(part, ring.header,
                          at_work ? ring_file_bytes(ring.header->cpus, ring.header->ring_bytes) : 0);
}
