/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_HEADROOM_H
#define WIRE_HEADROOM_H

/*
 * Would `bytes` more of tmpfs memory bring the target into danger? Looks at the file system and at the memory cgroups
 * that are charged for it.
 *
 * Runs in: target, at growth only: a few opens and reads. No state.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/ledger.h"

/** The file system alone. `dir`: where the ledger is; "" where it has no name. */
bool headroom_in_filesystem(const char *dir, uint64_t bytes);
/** Is there too little for a ledger that begins now and grows a while? */
bool headroom_is_short(const char *dir);
/** Once, when the process begins: is it under seccomp from the start, as in most containers? */
void headroom_begin(void);
/**
 * May a system call be made that the program does not expect? Where the process has entered seccomp since it began, by
 * whatever way, it counts one more reason in `sealed`, and asks no more. Only prctl() is called for this. In a process
 * that began under seccomp a later filter cannot be told from the first one: there `sealed` alone counts.
 */
bool headroom_may_call(uint32_t *sealed);
/**
 * Does the program keep enough of its own limits (RLIMIT_AS, RLIMIT_DATA) if so much more address space is taken, and
 * so much more private memory made writable? True where it has no limit. A few system calls where it has one.
 */
bool headroom_in_limits(uint64_t address_space, uint64_t data);
/**
 * Of a limit of the address space (RLIMIT_AS) the ledger and all tables beside it together take an eighth at most.
 * headroom_set_ledger() says how much address space the ledger takes, in place of what was said before. The other
 * three are for all else: takes `bytes`, if `spare` bytes more are left then; gives them back; asks only.
 */
struct headroom_space {
    uint64_t ledger, other;
};
void headroom_set_ledger(uint64_t bytes);
bool headroom_take_space(uint64_t bytes, uint64_t spare);
void headroom_give_space(uint64_t bytes);
bool headroom_has_space(uint64_t bytes);
/** The counters of this library, for the other library of ours in the process; which counts there from now on. */
struct headroom_space *headroom_own_space(void);
void headroom_share_space(struct headroom_space *with);
/** `held_bytes`: what the ledger has already. LEDGER_NOT_FULL when there is room; otherwise the reason why not. */
enum ledger_full headroom_check(const char *dir, uint64_t held_bytes, uint64_t bytes);

#endif
