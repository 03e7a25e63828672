/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_PROCESS_H
#define AGENT_PROCESS_H

/*
 * The state of the process: its settings, its ledger, and whether it is a fork child that has not yet let go of its
 * parent's ledger.
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
    const struct thread *maker; /* the thread that makes the ledger */
    uint32_t generation;        /* 1 at first, one more in each fork child; 0: before process_init() */
    uint32_t threads;           /* ordinals that threads have taken */
    uint32_t forks;             /* calls of libc's fork(); a bare clone() is not seen */
    bool forked;                /* a child of libc's fork() that has not been updated yet */
    int32_t pid;                /* a vfork child, which runs in this memory, has another one */
    uint64_t seed;
    uint64_t seed_given; /* 0: drawn from the kernel's random bytes */
    uint64_t period_at_start;
    /* The period, the index of its record and LEDGER_CONTROL_*: one word, because they change together. */
    uint64_t in_force;
    uint64_t control_word; /* the word of the control page that was applied last */
    const char *exec_name; /* the path that execve() was called with (AT_EXECFN) */
    int32_t parent_pid;
    uint64_t parent_image_id, forked_ticks;
    uint64_t began_ticks;                 /* of this image */
    uint32_t has_room;                    /* writer_take_first_room_cold() has taken room, or tried to */
    uint64_t early_losses[LEDGER_LOSSES]; /* until there is a ledger */
    bool alone; /* ALLIUM_FOLLOW=0: neither fork children nor the programs they execute are observed */
    uint32_t
        *alive; /* PROCESS_CURRENT; after process_init() in a page that the kernel wipes in fork children */
    const char *wrappers; /* patterns (ALLIUM_WRAPPERS), besides those that are built in */
    struct ledger_config config;
};

extern struct process process __attribute__((visibility("hidden")));

/** Reads the settings that the process was started with; once, from boot. */
void process_init(void);
/**
 * Brings thread and process up to date: a new thread gets its seed, a fork child lets go of its parent's ledger. False:
 * another thread, or the code that a signal handler interrupted, is doing so; observe nothing now.
 */
ONE_COPY bool process_ensure_current_cold(struct thread *t);
/** Waits while another thread updates the process or makes its ledger; gives up if that takes too long. */
ONE_COPY void process_wait_for_others(const struct thread *t);
/** Makes the ledger. False: that is not possible, or another thread is still making it. */
ONE_COPY bool process_open_ledger_cold(void);
/** Applies the word of the control page. */
ONE_COPY void process_apply_control_cold(void);
/** Counts one loss. */
ONE_COPY void process_count_loss(enum ledger_loss what);
/** Takes back a loss that was counted before the outcome was known. */
void process_uncount_loss(enum ledger_loss what);
/** The program is about to enter seccomp: from now on the agent makes no system call. */
ONE_COPY void process_seal(void);
/** The program did not enter seccomp. */
void process_unseal(void);
/** Before libc's fork(), in the parent (pthread_atfork). */
void process_before_fork(void);
/** After fork(), in the child (pthread_atfork): the next request updates the process. */
void process_after_fork(void);

#define PROCESS_CURRENT                                                                                      \
    1u /* in *alive; 0: a fork child that has not been updated; else: a thread is updating it */

/** Is the ledger this process's own? Only then may it be read. */
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

/** Makes the ledger if there is none yet. False: there is none and cannot be. */
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
