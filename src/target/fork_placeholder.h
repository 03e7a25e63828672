/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_FORK_PLACEHOLDER_H
#define TARGET_FORK_PLACEHOLDER_H

/*
 * Private memory that a fork child maps at the addresses of its parent's ledger, because the child does not inherit the
 * mapping of the ledger. If a signal handler forks, the child may return from the handler to code that was writing to
 * the ledger. That code then writes to the private memory, which nobody reads.
 *
 * Runs in: target; the handlers of pthread_atfork(3) call it. Children of a bare clone(2) do not get such memory.
 * Threads: any that fork.
 * Owns: the memory. It is unmapped in a descendant FORK_PLACEHOLDER_FORKS forks later, and not earlier, because signal
 * handlers may interrupt each other and each may fork: then a grandchild may return to code that was writing to the
 * ledger of its grandparent.
 */

#include <stdbool.h>
#include <stdint.h>

#define FORK_PLACEHOLDER_PARTS 4u
#define FORK_PLACEHOLDER_FORKS 4u

/**
 * Called in the parent before fork(): stores address and size of a part of the ledger, or of the control page. `bytes`
 * 0: the child needs no memory for this part.
 */
void fork_placeholder_note(unsigned part, const void *at, uint64_t bytes);
/**
 * Called in the child: maps zeros at the addresses of each part, unless something is mapped there already (by another
 * fork handler). Returns 1 << part for each part that was mapped, combined; 0 also if no system call may be made.
 */
unsigned fork_placeholder_put(void);

#endif
