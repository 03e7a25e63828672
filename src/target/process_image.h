/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_PROCESS_IMAGE_H
#define TARGET_PROCESS_IMAGE_H

/*
 * The life of a process image, as the agent and the tag library share it: it begins, makes a ledger when something is
 * to be written there, is left by a fork child, and ends. Each library has one `process` of its own.
 *
 * A fork child must not use the ledger of its parent, which is not mapped there (MADV_DONTFORK). How a child was made
 * does not matter: *alive lies in a page that the kernel wipes in fork children (MADV_WIPEONFORK), and a child finds
 * 0 there. At its first request that is observed it begins an image of its own: process_update().
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 * Owns: the ledger and the page of *alive, until the process ends.
 * Invariant: one thread at a time updates the process or makes its ledger, with all signals blocked unless the
 * process is under seccomp. Other threads are turned away; process_wait() waits for that thread, for a limited time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "wire/ledger_make.h"

enum ledger_stage { LEDGER_STAGE_NONE, LEDGER_STAGE_MAKING, LEDGER_STAGE_MADE, LEDGER_STAGE_FAILED };

/* Values of *alive; any other one: a thread updates the process. */
#define PROCESS_STALE   0u /* it has not begun, or it is a fork child that has not been updated */
#define PROCESS_CURRENT 1u

struct process {
    struct ledger ledger;
    uint32_t *alive;      /* a word of the page that the kernel wipes in fork children */
    uint32_t generation;  /* 0: not begun; then 1, and one more in each fork child */
    uint32_t stage;       /* enum ledger_stage */
    const void *maker;    /* the thread pointer of the thread that makes the ledger */
    bool waited_in_vain;  /* nobody waits any more */
    int32_t pid;          /* a vfork child, which runs in this memory, has another one */
    int32_t parent_pid;   /* 0: it did not begin by a fork */
    uint64_t began_ticks; /* of this image */
    uint64_t parent_image_id, forked_ticks;
    const char *exec_name; /* the path that execve() was called with (AT_EXECFN); NULL: unknown */
    struct ledger_config config;
};

extern struct process process __attribute__((visibility("hidden")));

/**
 * Has the process begun, and is it not a fork child that has still to be updated? Only then may its ledger be read.
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
 * Begins the process, or updates a fork child. False: another thread, or the code that a signal handler interrupted,
 * is about to do so.
 */
ONE_COPY bool process_update(void);
/** Makes the ledger of a process that is current. False: there is none, or another thread has not made it yet. */
ONE_COPY bool process_open_ledger_cold(void);

static inline bool process_open_ledger(void)
{
    return likely(load_acquire(&process.stage) == LEDGER_STAGE_MADE) || process_open_ledger_cold();
}

/** Waits while another thread updates the process or makes its ledger. If that takes too long, nobody waits again. */
ONE_COPY void process_wait(void);
/**
 * Before something that no signal handler may interrupt. False: the process is under seccomp; nothing was blocked.
 */
bool process_block_signals(uint64_t *mask);
void process_unblock_signals(uint64_t mask);
/** The control page that tags have until there is a ledger: a page of zeros with this word. */
void process_control_at_start(uint64_t word);
/**
 * In a fork child: its control page is no longer that of the parent. Called when the child is updated, at the latest.
 */
void process_leave_control(void);
/**
 * Replaces the control page that was inherited by zeros; code that a forking signal handler interrupted may still
 * read it.
 */
void process_drop_control(const struct ledger_control *inherited);
/** Fills in the header of a new ledger, and its first string (""). */
void process_describe(enum ledger_clock clock);
/** At the end of the process: the ledger says when. */
void process_end(void);

/* ---- what each library defines ---- */

/**
 * Reads the settings of the process. Sets process.config, with random bits in its image_id, and process.exec_name.
 */
void process_begin_library(void);
/**
 * In a fork child: forgets what belongs to the ledger of the parent. process.config.image_id is already that of the
 * child.
 */
void process_become_child(void);
/**
 * Makes the ledger. Returns LEDGER_STAGE_MADE or LEDGER_STAGE_FAILED, or LEDGER_STAGE_NONE if it is to be tried
 * again.
 */
enum ledger_stage process_begin_ledger(void);
/** The time, in the unit of the ledger's times. */
uint64_t process_ticks(void);

#endif
