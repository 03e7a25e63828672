/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_HEADROOM_H
#define WIRE_HEADROOM_H

/*
 * Decides whether the target can take more memory without danger, and whether it may make system calls. Examines the
 * file system of the ledger, the memory cgroups of the process, its limits of address space and data, and seccomp.
 *
 * Runs in: target, cold paths: when the ledger is made or grows, or a table beside it does. Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/ledger.h"

/**
 * Reads how many bytes more fit into the file system of `dir`, the directory of the ledger, without the part that is
 * kept for others (an eighth of the file system, at most 64 MiB), and the bytes of the whole file system. False: `dir`
 * is "" (the ledger is a memfd), or the file system cannot be examined, as after chroot(2): then growth is not checked,
 * and a full file system refuses pages.
 */
bool headroom_measure(const char *dir, uint64_t *left, uint64_t *total);
/** Returns what is left, as headroom_measure(); UINT64_MAX: it is not known. */
static inline uint64_t headroom_filesystem_left(const char *dir)
{
    uint64_t left, total;
    return headroom_measure(dir, &left, &total) ? left : UINT64_MAX;
}

static inline bool headroom_in_filesystem(const char *dir, uint64_t bytes)
{
    return headroom_filesystem_left(dir) >= bytes;
}

/** The least room that a new ledger needs, and what is enough for its first growth, too. */
#define HEADROOM_LEDGER_LEAST  (256u << 10)
#define HEADROOM_LEDGER_ENOUGH (4ull << 20)
/**
 * Returns true if the file system has too little room for a new ledger and its first growth. False also if the file
 * system cannot be examined.
 */
static inline bool headroom_is_short(const char *dir)
{
    uint64_t left, total;
    return headroom_measure(dir, &left, &total) && left < HEADROOM_LEDGER_ENOUGH &&
           (left < HEADROOM_LEDGER_LEAST || left < total / 2);
}

/** Called by the first process_update(). Records whether the process is under seccomp, as in most containers. */
void headroom_begin(void);
/**
 * Returns the number of seccomp filters of the process; 0 if headroom_begin() found no seccomp; LEDGER_FILTERS_UNKNOWN
 * if /proc/self/status does not tell.
 */
uint32_t headroom_seccomp_filters(void);
/**
 * Returns true if the library may make a system call that the program does not expect: if *sealed is 0, and prctl()
 * does not show that the process has entered seccomp. If prctl() shows this, adds 1 to *sealed. If the process was
 * under seccomp at headroom_begin(), prctl() cannot show whether a filter was added later: then only *sealed is
 * checked.
 */
bool headroom_may_call(uint32_t *sealed);
/**
 * Returns true if the process stays at least 128 MiB below RLIMIT_AS after taking `address_space` more bytes of address
 * space, and as far below RLIMIT_DATA after making `data` more bytes of private memory writable. A limit is not checked
 * if its argument is 0. Without a limit, makes only the calls that read the limits.
 */
bool headroom_in_limits(uint64_t address_space, uint64_t data);
/**
 * The budget of address space. If the address space is limited (RLIMIT_AS), the ledger and all tables beside it take at
 * most an eighth of the limit together. headroom_set_ledger() sets the bytes that the ledger takes. If at least `bytes`
 * + `spare` bytes are left, headroom_take_space() takes `bytes` for a table, else it returns false.
 * headroom_give_space() gives the bytes of a table back. headroom_has_space() returns whether `bytes` are left.
 */
struct headroom_space {
    uint64_t ledger, other; /* bytes of the ledger, and of all tables beside it */
};
void headroom_set_ledger(uint64_t bytes);
bool headroom_take_space(uint64_t bytes, uint64_t spare);
void headroom_give_space(uint64_t bytes);
bool headroom_has_space(uint64_t bytes);
/**
 * Agent and tag library share one budget if both are in a process. headroom_own_space() returns the counters of the
 * library that calls it. headroom_share_space() adds the tables of the calling library to `with`, the counters of the
 * other library; from then on, the calling library uses `with`.
 */
struct headroom_space *headroom_own_space(void);
void headroom_share_space(struct headroom_space *with);
/**
 * Returns LEDGER_NOT_FULL if file system and memory cgroups allow the ledger to grow by `bytes`, else the reason.
 * `held_bytes`: the present `ready_bytes` of the ledger.
 */
enum ledger_full headroom_check(const char *dir, uint64_t held_bytes, uint64_t bytes);

#endif
