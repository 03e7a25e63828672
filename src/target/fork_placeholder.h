/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_FORK_PLACEHOLDER_H
#define TARGET_FORK_PLACEHOLDER_H

/*
 * Memory in place of the parent's ledger, which is not mapped in a fork child. If a signal handler forks, its child
 * may return to code that was writing to the ledger when the handler interrupted it. That code then writes to private
 * memory, which nobody reads.
 *
 * Runs in: target; the handlers of pthread_atfork(3) call it. Children of a bare clone(2) have no such memory.
 * Threads: any that fork.
 * Owns: the memory, for FORK_PLACEHOLDER_FORKS generations of children: until then, handlers that fork upon each
 * other may return to such code.
 */

#include <stdbool.h>
#include <stdint.h>

#define FORK_PLACEHOLDER_PARTS 3u
#define FORK_PLACEHOLDER_FORKS 4u

/**
 * In the parent, before fork(): the part `part` of its ledger, or of its control page, is at `at`. 0 bytes: there is
 * none.
 */
void fork_placeholder_note(unsigned part, const void *at, uint64_t bytes);
/**
 * In the child: maps zeroed memory where the parts were. Returns a bit for each part that was mapped: none if no
 * system call may be made, or where another fork handler had mapped something already.
 */
unsigned fork_placeholder_put(void);

#endif
