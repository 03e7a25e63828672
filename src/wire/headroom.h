/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_HEADROOM_H
#define WIRE_HEADROOM_H

/*
 * Decides whether the target can take `bytes` more of tmpfs memory without danger. It examines the file
 * system and the memory cgroups that are charged for the memory.
 *
 * Runs in: target, only when a ledger grows: a few opens and reads. It keeps no state.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/ledger.h"

/**
 * Has the file system room for `bytes` more? True also if it cannot be examined. `dir` is the directory of the ledger,
 * or "" if the ledger's file has no name (memfd).
 */
bool headroom_in_filesystem(const char *dir, uint64_t bytes);
/** Returns true if the file system has too little room for a new ledger and its first growth. */
bool headroom_is_short(const char *dir);
/** Called once when the process starts. Records whether the process is under seccomp from the start, as in
 * most containers. */
void headroom_begin(void);
/**
 * Returns the number of seccomp filters of the process, or LEDGER_FILTERS_UNKNOWN. 0 if it did not start under seccomp.
 */
uint32_t headroom_seccomp_filters(void);
/**
 * Returns true if the agent may make a system call that the program does not expect. If prctl() shows that the process
 * has entered seccomp, adds a reason to `sealed`, and returns false from then on. If the process started under seccomp,
 * prctl() cannot show whether a filter was added later: then only `sealed` is checked.
 */
bool headroom_may_call(uint32_t *sealed);
/**
 * Returns true if the process, after taking `address_space` more bytes of address space and making `data`
 * more bytes of private memory writable, stays far enough below RLIMIT_AS and RLIMIT_DATA. Without a limit it
 * returns true and makes only the calls that read the limits.
 */
bool headroom_in_limits(uint64_t address_space, uint64_t data);
/**
 * The budget of address space. If the address space is limited (RLIMIT_AS), the ledger and all tables beside it take at
 * most an eighth of the limit together. headroom_set_ledger() sets how much the ledger takes. headroom_take_space()
 * takes `bytes` for a table, if at least `spare` bytes are left after that; headroom_give_space() gives bytes back;
 * headroom_has_space() returns whether `bytes` are left.
 */
struct headroom_space {
    uint64_t ledger, other;
};
void headroom_set_ledger(uint64_t bytes);
bool headroom_take_space(uint64_t bytes, uint64_t spare);
void headroom_give_space(uint64_t bytes);
bool headroom_has_space(uint64_t bytes);
/**
 * The two libraries in a process share one budget: the first function returns the counters of this library, the second
 * makes this library use those of the other one.
 */
struct headroom_space *headroom_own_space(void);
void headroom_share_space(struct headroom_space *with);
/** Returns LEDGER_NOT_FULL if the ledger may grow by `bytes`, else the reason. `held_bytes`: its current size. */
enum ledger_full headroom_check(const char *dir, uint64_t held_bytes, uint64_t bytes);

#endif
