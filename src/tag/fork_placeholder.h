/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_FORK_PLACEHOLDER_H
#define TAG_FORK_PLACEHOLDER_H

/*
 * What a child finds in the place of its parent's ledger, which is not mapped there: where a signal handler forked, the
 * child may return to the midst of booking. It writes to memory of its own then, which nobody reads, and which its own
 * children lose.
 *
 * Runs in: target; by fork(), not where a child is made by the bare system call.
 */

/** Once, at the start. */
void fork_placeholder_begin(void);

#endif
