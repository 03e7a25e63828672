/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_PROCESS_H
#define AGENT_PROCESS_H

/*
 * The agent's part of the state of its process (target/process_image.h): settings, threads, the sampling period in
 * force.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/thread_state.h"
#include "target/process_image.h"

/* The state of the agent, in addition to `process`. */
struct agent_state {
    uint32_t threads;  /* number of threads that have attached; it becomes the ordinal of the next thread */
    uint32_t forks;    /* calls of libc's fork() by this process; a bare clone() is not counted */
    bool forked;       /* set in a child of libc's fork() until process_update() */
    bool alone;        /* ALLIUM_FOLLOW=0: neither fork children nor executed programs are observed */
    uint32_t has_room; /* writer_take_first_room_cold() has taken room, or has tried to */
    uint64_t seed;
    uint64_t seed_given; /* ALLIUM_SEED, with bit 63 set; 0: not set, so `seed` comes from AT_RANDOM */
    uint64_t period_at_start;
    /* The period, the index of its record and two LEDGER_CONTROL_* bits, in one word: they change together. */
    uint64_t in_force;
    uint64_t control_word; /* the last word of the control page that a thread has begun to apply */
    uint64_t early_losses[LEDGER_LOSSES]; /* counted before there is a ledger */
    const char *wrappers; /* ALLIUM_WRAPPERS: more patterns of wrappers ('!': not wrappers); NULL: none */
};

extern struct agent_state agent_state __attribute__((visibility("hidden")));

/**
 * Updates `process` in a new fork child, and initialises the state of a thread that is new to the process. False: the
 * agent is not initialised, another thread is updating `process`, or the caller is a signal handler whose thread must
 * first finish code that it interrupted. The caller then must not use the ledger.
 */
ONE_COPY bool process_ensure_current_cold(struct thread *t);
/** Applies the word of the control page, which has the period and switches. Does nothing if there is no ledger. */
ONE_COPY void process_apply_control_cold(void);
/** Adds 1 to a loss of the ledger, or to agent_state.early_losses if there is no ledger. */
ONE_COPY void process_count_loss(enum ledger_loss what);
/** Takes back one process_count_loss(). The loss was counted before a call that may not return. */
void process_uncount_loss(enum ledger_loss what);
/** Called before the program enters seccomp: takes room in advance. From then on the agent makes no system call. */
ONE_COPY void process_seal(void);
/** Undoes one process_seal(), because the program failed to enter seccomp. */
void process_unseal(void);
/** Before libc's fork(), in the parent (pthread_atfork): stores the data that process_after_fork() needs. */
void process_before_fork(void);
/** After libc's fork(), in the child (pthread_atfork): makes the next request of the child update `process`. */
void process_after_fork(void);

/** True if the thread is attached to the current process, so that it needs no process_ensure_current_cold(). */
static inline bool process_is_known(const struct thread *t)
{
    return likely(t->generation == process.generation) && process_is_current();
}

/** Calls process_ensure_current_cold() if that is necessary. True: the thread is attached to the current process. */
static inline bool process_ensure_current(struct thread *t)
{
    return process_is_known(t) || process_ensure_current_cold(t);
}

/*
 * Arguments of fork_placeholder_note(). PART_SITE_SUMS lies within PART_LEDGER. It is noted at each fork, PART_LEDGER
 * PART_CONTROL and the rings only if a signal handler forks that interrupted code which uses the ledger.
 */
enum { PART_LEDGER, PART_CONTROL, PART_SITE_SUMS, PART_RINGS };

#define PROCESS_INDEX_SHIFT 48 /* periods are at most 2^40 */

static inline uint64_t process_period(uint64_t in_force)
{
    return in_force & ((1ull << PROCESS_INDEX_SHIFT) - 1);
}

static inline uint8_t process_period_index(uint64_t in_force)
{
    return (uint8_t)(in_force >> PROCESS_INDEX_SHIFT);
}

static inline void process_apply_control(void)
{
    if (unlikely(load_relaxed(&process.ledger.control->word) != load_relaxed(&agent_state.control_word)))
        process_apply_control_cold();
}

static inline struct ledger_sample *process_sample(uint32_t record)
{
    return ledger_at(&process.ledger, LEDGER_SAMPLES, struct ledger_sample, record);
}

#endif
