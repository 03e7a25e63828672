/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_PROCESS_H
#define AGENT_PROCESS_H

/*
 * What the agent knows of the process: how it was asked to sample, its ledger, and whether this is a fork child that
 * does not know it yet.
 *
 * Runs in: target. Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/thread_state.h"
#include "wire/ledger_make.h"

enum ledger_stage { LEDGER_STAGE_NONE, LEDGER_STAGE_MAKING, LEDGER_STAGE_MADE, LEDGER_STAGE_FAILED };

struct process {
    struct ledger ledger;
    uint32_t stage;             /* enum ledger_stage */
    const struct thread *maker; /* of the ledger */
    uint32_t generation;        /* 1 at first, one more in each fork child; 0: not begun */
    uint32_t threads;           /* ordinals given out */
    uint32_t forks;             /* by libc: those of a bare clone come unseen */
    bool forked;                /* this is a child of one of them, and does not know it yet */
    int32_t pid;                /* a vfork child, which runs in our memory, has another */
    uint64_t seed;
    uint64_t seed_given; /* 0: drawn from the kernel's random bytes */
    uint64_t period_at_start;
    uint64_t
        in_force; /* the period, the index of its record and LEDGER_CONTROL_*: in one word, as they belong together */
    uint64_t control_word; /* the control page's, when it was last heeded */
    const char *exec_name; /* what execve was given, in the kernel's own words at the top of the stack */
    int32_t parent_pid;
    uint64_t parent_image_id, forked_ticks;
    uint64_t early_losses[LEDGER_LOSSES]; /* until there is a ledger */
    bool alone; /* asked to leave children alone: neither fork children nor what they exec are observed */
    uint32_t *alive;      /* once it has begun, in a page that the kernel wipes in fork children */
    const char *wrappers; /* patterns of its own, beside those that are built in */
    struct ledger_config config;
};

extern struct process process __attribute__((visibility("hidden")));

/** Reads the settings the process was started with; once, from boot. */
void process_init(void);
/**
 * Makes sure that thread and process know what they are: a new thread gets its seed, a fork child lets go of its
 * parent's ledger. False: another context is in the middle of that; observe nothing now.
 */
ONE_COPY bool process_ensure_current_cold(struct thread *t);
/** Another thread is about to settle the process, or to make its ledger: until it has done so, or is not likely to any more. */
ONE_COPY void process_wait_for_others(const struct thread *t);
/** Makes the ledger. False: it cannot be, or somebody else is at it. */
ONE_COPY bool process_open_ledger_cold(void);
/** Adopts a period set through the control page. */
ONE_COPY void process_apply_control_cold(void);
/** Counts what was lost. */
ONE_COPY void process_count_loss(enum ledger_loss what);
/** Takes back what was counted before the outcome was known. */
void process_uncount_loss(enum ledger_loss what);
/** No system call any more: the program is about to enter seccomp. */
ONE_COPY void process_seal(void);
/** It did not. */
void process_unseal(void);
/** Before libc's fork, in the parent. */
void process_before_fork(void);
/** After fork, in the child (pthread_atfork): the next request finds out. */
void process_after_fork(void);

#define PROCESS_CURRENT 1u /* in *alive; 0: a fork child that does not know it */

/** The ledger may be looked at: it is this process's own. */
static inline bool process_is_current(void)
{
    return likely(load_acquire(process.alive) == PROCESS_CURRENT);
}

static inline bool process_is_known(const struct thread *t)
{
    return likely(t->generation == process.generation) && process_is_current();
}

/** Cheap form of process_ensure_current_cold. */
static inline bool process_ensure_current(struct thread *t)
{
    return process_is_known(t) || process_ensure_current_cold(t);
}

/** There is a ledger, made now if need be. False: there is none and cannot be. */
static inline bool process_open_ledger(void)
{
    return likely(load_acquire(&process.stage) == LEDGER_STAGE_MADE) || process_open_ledger_cold();
}

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
    if (unlikely(load_relaxed(&process.ledger.control->word) != load_relaxed(&process.control_word)))
        process_apply_control_cold();
}

static inline struct ledger_sample *process_sample(uint32_t record)
{
    return ledger_at(&process.ledger, LEDGER_SAMPLES, struct ledger_sample, record);
}

#endif
