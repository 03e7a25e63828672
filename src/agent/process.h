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
    uint32_t threads;  /* number of threads that have attached; each has an ordinal */
    uint32_t forks;    /* calls of libc's fork(); a bare clone() is not seen */
    bool forked;       /* set in a child of libc's fork() until process_update() */
    bool alone;        /* ALLIUM_FOLLOW=0: neither fork children nor the programs they execute are observed */
    uint32_t has_room; /* writer_take_first_room_cold() has done its work */
    uint64_t seed;
    uint64_t seed_given; /* ALLIUM_SEED; 0: `seed` is from the kernel's random bytes */
    uint64_t period_at_start;
    /* The period, the index of its record and LEDGER_CONTROL_* bits, in one word, because they change together. */
    uint64_t in_force;
    uint64_t control_word; /* the word of the control page that a thread took last, to apply it */
    uint64_t early_losses[LEDGER_LOSSES]; /* counted before there is a ledger */
    const char *wrappers;                 /* patterns (ALLIUM_WRAPPERS), besides those that are built in */
};

extern struct agent_state agent_state __attribute__((visibility("hidden")));

/**
 * Initialises the state of a new thread, and updates the process in a fork child. False: another thread is doing this,
 * or the code that the calling signal handler interrupted. The caller then observes nothing.
 */
ONE_COPY bool process_ensure_current_cold(struct thread *t);
/** Applies the word of the control page, which has the period and switches, if it has changed. */
ONE_COPY void process_apply_control_cold(void);
/** Counts one loss. */
ONE_COPY void process_count_loss(enum ledger_loss what);
/** Subtracts one loss: it was counted before a call, which then succeeded. */
void process_uncount_loss(enum ledger_loss what);
/** The program is about to enter seccomp: from now on the agent makes no system call. */
ONE_COPY void process_seal(void);
/** Undoes process_seal(), because the program failed to enter seccomp. */
void process_unseal(void);
/** Before libc's fork(), in the parent (pthread_atfork): notes what process_after_fork() needs. */
void process_before_fork(void);
/** After fork(), in the child (pthread_atfork): marks the process as stale, so that the next request updates it. */
void process_after_fork(void);

static inline bool process_is_known(const struct thread *t)
{
    return likely(t->generation == process.generation) && process_is_current();
}

/** Calls process_ensure_current_cold() if the thread is new or the process is a new fork child. */
static inline bool process_ensure_current(struct thread *t)
{
    return process_is_known(t) || process_ensure_current_cold(t);
}

/* Parts of target/fork_placeholder.h. PART_SITE_SUMS lies within PART_LEDGER; it is mapped even if the rest is not. */
enum { PART_LEDGER, PART_CONTROL, PART_SITE_SUMS };

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
