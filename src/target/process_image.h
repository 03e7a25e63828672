/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_PROCESS_IMAGE_H
#define TARGET_PROCESS_IMAGE_H

/*
 * The state of a process image: its start, its ledger, its forks, its end. The agent and the tag library each contain
 * this code and have a `process` of their own. A ledger is made only when the library has something to write into it.
 *
 * A fork child must not use its parent's ledger, which is not mapped in the child (MADV_DONTFORK). *alive detects each
 * child, however it was created: the word lies in a page that the kernel fills with zeros in fork children
 * (MADV_WIPEONFORK). At its first request that the library sees, the child starts an image of its own by
 * process_update().
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: the ledger and the page of *alive, until the process ends.
 * Invariant: only one thread at a time runs process_update() or makes the ledger. It blocks all signals unless the
 * process is under seccomp. Other threads may call process_wait() to wait for it, for a limited time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "wire/ledger_make.h"

enum ledger_stage { LEDGER_STAGE_NONE, LEDGER_STAGE_MAKING, LEDGER_STAGE_MADE, LEDGER_STAGE_FAILED };

/* Values of *alive. Any other value: a thread is in process_update(). */
#define PROCESS_STALE   0u /* process_update() has not run since the start or the fork */
#define PROCESS_CURRENT 1u

struct process {
    struct ledger ledger;
    uint32_t *alive;      /* a word of the page that the kernel wipes in fork children */
    uint32_t generation;  /* 0 before process_update(); then 1; a fork child has one more than its parent */
    uint32_t stage;       /* enum ledger_stage */
    const void *maker;    /* the thread pointer of the thread that makes the ledger */
    bool waited_in_vain;  /* a wait was too long: process_wait() returns at once */
    int32_t pid;          /* a vfork child sees its parent's here, because it shares this memory */
    int32_t parent_pid;   /* 0: the image was not created by fork() */
    uint64_t began_ticks; /* start of this image */
    uint64_t parent_image_id, forked_ticks;
    const char *exec_name; /* the path that execve() was called with (AT_EXECFN); NULL: unknown */
    struct ledger_config config;
};

extern struct process process __attribute__((visibility("hidden")));

/**
 * True after process_update() has run in this very process. Before that, `process` is not set, or describes the fork
 * parent, and the ledger must not be read.
 */
static inline bool process_is_current(void)
{
    return likely(load_acquire(process.alive) == PROCESS_CURRENT);
}

/** Is there a ledger of this process? */
static inline bool process_has_ledger(void)
{
    return process_is_current() && load_acquire(&process.stage) == LEDGER_STAGE_MADE;
}

/**
 * Initialises `process`, or updates it in a fork child. False: another thread is doing this, or the code that the
 * calling signal handler interrupted.
 */
ONE_COPY bool process_update(void);
/** Makes the ledger; process_is_current() must hold. False: it cannot be made, or another thread is still making it. */
ONE_COPY bool process_open_ledger_cold(void);

static inline bool process_open_ledger(void)
{
    return likely(load_acquire(&process.stage) == LEDGER_STAGE_MADE) || process_open_ledger_cold();
}

/**
 * Waits while another thread runs process_update() or makes the ledger. After one wait was too long, all calls return
 * at once.
 */
ONE_COPY void process_wait(void);
/**
 * Blocks all signals, for code that no signal handler may interrupt, and stores the old mask in *mask. False: no signal
 * was blocked, because the process is under seccomp.
 */
bool process_block_signals(uint64_t *mask);
void process_unblock_signals(uint64_t mask);
/** Sets the control page that tags read until there is a ledger: `word`, and zeros behind it. */
void process_control_at_start(uint64_t word);
/** In a fork child: stops the use of the parent's control page. process_update() calls this, too. */
void process_leave_control(void);
/**
 * Maps zeros over the control page that a fork child inherited. The page stays mapped because code that a forking
 * signal handler interrupted may still read it.
 */
void process_drop_control(const struct ledger_control *inherited);
/** Fills in the header of a new ledger, and adds its first string, "". */
void process_describe(enum ledger_clock clock);
/** Marks the ledger as that of a process that has ended, with the time. */
void process_end(void);

/* ---- what each library defines ---- */

/**
 * Reads the settings of the process into process.config, with random bits as its image_id, and sets process.exec_name.
 */
void process_begin_library(void);
/**
 * In a fork child: resets all state of the library that refers to the parent's ledger. process.config.image_id is
 * already the child's.
 */
void process_become_child(void);
/**
 * Makes the ledger. Returns LEDGER_STAGE_MADE or LEDGER_STAGE_FAILED; LEDGER_STAGE_NONE: the next call is to try again.
 */
enum ledger_stage process_begin_ledger(void);
/** Returns the time, in the unit of the ledger's times. */
uint64_t process_ticks(void);

#endif
