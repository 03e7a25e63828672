/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_FORK_PLACEHOLDER_H
#define TARGET_FORK_PLACEHOLDER_H

/*
 * Private memory that a fork child maps where the ledger of its parent was, which is not mapped in the child. If a
 * signal handler forks, the child may return from the handler to code that was writing to the ledger. That code then
 * writes to the private memory, which nobody reads.
 *
 * Runs in: target; the handlers of pthread_atfork(3) call it. Children of a bare clone(2) have no such memory.
 * Threads: any that fork.
 * Owns: the memory, until FORK_PLACEHOLDER_FORKS later forks: if signal handlers interrupt each other and each one
 * forks, a grandchild may return to code that was writing to the ledger of an older ancestor.
 */

#include <stdbool.h>
#include <stdint.h>

#define FORK_PLACEHOLDER_PARTS 3u
#define FORK_PLACEHOLDER_FORKS 4u

/**
 * In the parent, before fork(): stores the address of one part of its ledger or control page. 0 bytes: there is no such
 * part.
 */
void fork_placeholder_note(unsigned part, const void *at, uint64_t bytes);
/**
 * In the child: maps zeros where the parts were, unless another fork handler has mapped something there. Returns a bit
 * for each part that it mapped; 0 if no system call may be made.
 */
unsigned fork_placeholder_put(void);

#endif
