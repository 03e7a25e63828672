/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of liballium.so: the program's own, and those of code tags. */
#include "agent/clock.h"
#include "agent/hooks/cold.h"
#include "agent/tracer/tracer.h"
#include "agent/tracer/tracer_put.h"
#include "agent/tracer/tracer_rings.h"
#include "base/sigsafe/atomic.h"
#include "target/agent_api.h"

/*
 * Appends an event of any number of words; drops it if tracing is off. After a result other than SEQUENCE_DONE, the
 * caller takes the slow path.
 */
static inline enum sequence_result append_hot(uint64_t *event, uint32_t words)
{
    const uint32_t thread = tracer_thread;
    const ptrdiff_t area = load_relaxed(&tracer_hot.rings.area);
    if (unlikely((int32_t)thread <= 0) || unlikely(!area) || unlikely(!clock_is_tsc))
        return SEQUENCE_NO_CPU;
    if (tracer_is_all_off())
        return SEQUENCE_DONE;
    event[1] |= (uint64_t)thread << 32;
    return sequence_append(&tracer_hot.rings, area, event, words);
}

/* Tells liballium.so where the rings are. False: it must not write into them by sequences. */
static bool tell_rings(struct agent_api_rings *to)
{
    if (!tracer_on || !tracer_rings_made() || !tracer_ring.is_hot)
        return false;
    *to = (struct agent_api_rings){&tracer_ring.at, &clock_is_tsc};
    return true;
}

/* Called from code of liballium.so that the program calls: no hook of the agent is below it. */
EXPORT bool allium_agent_trace(uint32_t version, uint64_t *event, uint32_t words)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    if (version == AGENT_API_VERSION && words == AGENT_API_ASKS_CHILD)
        return tracer_thread & TRACER_UNREGISTERED;
    if (version != AGENT_API_VERSION || !tracer_on)
        return false;
    if (words == AGENT_API_ASKS_RINGS)
        return tell_rings((struct agent_api_rings *)event);
    if (words == AGENT_API_LOST)
        tracer_count_lost();
    if (!event)
        return true;
    enum sequence_result done = words & AGENT_API_ABORTED ? SEQUENCE_ABORTED : SEQUENCE_NO_CPU;
    words &= ~AGENT_API_ABORTED;
    if (done == SEQUENCE_NO_CPU)
        done = append_hot(event, words);
    if (likely(done == SEQUENCE_DONE) || !tracer_begin_cold(t, &outside))
        return true;
    if (done == SEQUENCE_ABORTED)
        atomic_add64(&tracer_ring.header->aborted, 1);
    tracer_append_cold(event, words);
    tracer_end_cold(t, outside);
    return true;
}
