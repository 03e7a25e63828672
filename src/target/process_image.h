/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_PROCESS_IMAGE_H
#define TARGET_PROCESS_IMAGE_H

/*
 * The state of a process image: its start, its ledger, its forks, its end. The agent and the tag library each contain
 * this code and have a `process` of their own. A ledger is made only when the library calls process_open_ledger().
 *
 * A fork child must not use its parent's ledger, which is not mapped in the child (MADV_DONTFORK). *alive detects each
 * child, however it was created: the word lies in a page that the kernel fills with zeros in fork children
 * (MADV_WIPEONFORK). At the first request of the child that takes a slow path of the library, process_update() starts
 * an image of the child's own.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: the ledger and the page of *alive, until the process ends.
 * Invariant: only one thread at a time runs process_update() or makes the ledger. This thread blocks all signals if it
 * may make system calls. Other threads may call process_wait() to wait for this thread, for a limited time.
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
    bool waited_in_vain;  /* a wait was too long: process_wait() does not wait any more */
    int32_t pid;          /* a vfork child sees the id of its parent, because both share this memory */
    int32_t parent_pid;   /* 0: the image was not created by fork() */
    uint64_t began_ticks; /* process_ticks() at the start of this image */
    uint64_t parent_image_id, forked_ticks;
    const char *exec_name; /* the path that execve() was called with (AT_EXECFN); NULL: unknown */
    struct ledger_config config;
};

extern struct process process __attribute__((visibility("hidden")));

/**
 * Returns whether process_update() has run in this very process. Before that, `process` is not set, or describes the
 * fork parent, and the ledger must not be read.
 */
static inline bool process_is_current(void)
{
    return likely(load_acquire(process.alive) == PROCESS_CURRENT);
}

/** Returns whether this process has a ledger. */
static inline bool process_has_ledger(void)
{
    return process_is_current() && load_acquire(&process.stage) == LEDGER_STAGE_MADE;
}

/**
 * Initialises `process`, or updates it in a fork child. True: `process` is current. False: another thread is doing
 * this, or the caller is in a signal handler that interrupted process_update().
 */
ONE_COPY bool process_update(void);
/**
 * Makes the ledger if there is none; process_is_current() must hold. True: there is a ledger. False: the ledger cannot
 * be made, or is still being made by another thread or by code that the calling signal handler interrupted.
 */
ONE_COPY bool process_open_ledger_cold(void);

static inline bool process_open_ledger(void)
{
    return likely(load_acquire(&process.stage) == LEDGER_STAGE_MADE) || process_open_ledger_cold();
}

/**
 * Waits while another thread runs process_update() or makes the ledger, at most SPIN_WAIT_MOST_NS. After one wait has
 * lasted that long, all further calls return at once, until the process forks: in the child they may wait again.
 */
ONE_COPY void process_wait(void);
/**
 * Blocks all signals, for code that no signal handler may interrupt, and stores the old mask in *mask. False: no signal
 * was blocked, because the library may make no system call (seccomp).
 */
bool process_block_signals(uint64_t *mask);
void process_unblock_signals(uint64_t mask);
/** Sets process.config.initial_control to a page with this `word` and without rules. */
void process_control_at_start(uint64_t word);
/**
 * In a fork child: replaces process.ledger.control by a page without settings. If the parent's page stays mapped, it
 * becomes process.config.initial_control. process_update() calls this, too.
 */
void process_leave_control(void);
/**
 * Maps zeros over the control page that a fork child inherited, and unmaps the rules behind the page. The page stays
 * mapped because code that a forking signal handler interrupted may still read it. Does nothing if `inherited` is NULL,
 * or the page of process_control_at_start(), or the control page in use.
 */
void process_drop_control(const struct ledger_control *inherited);
/** Returns the path of the program. A fork child uses the parent's result if the parent has called this function. */
const char *process_exe(void);
/** Fills in times, parent and program in the header of a new ledger. Adds two strings: "" and the program's path. */
void process_describe(enum ledger_clock clock);
/** If there is a ledger, marks its process as ended and stores the time. */
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
 * Makes the ledger. Returns LEDGER_STAGE_MADE, LEDGER_STAGE_FAILED, or LEDGER_STAGE_NONE if process_open_ledger() is to
 * try again at its next call.
 */
enum ledger_stage process_begin_ledger(void);
/** Returns the time, in the unit of the ledger's times. */
uint64_t process_ticks(void);

#endif
