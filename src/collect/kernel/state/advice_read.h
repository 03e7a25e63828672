/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_ADVICE_READ_H
#define COLLECT_ADVICE_READ_H

/*
 * Fills what advice is computed from (model/kernel/advice/advice.h) with the texts of a kernel, this one's or a
 * recording's.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 * Invariant: whatever the texts say, no number is larger than what a memory can have.
 */

#include "collect/kernel/state/memory_parse.h"
#include "model/kernel/advice/advice.h"

/** Takes all texts: memory, modules, boot log, command line, release. */
void advice_read(struct advice_input *in, memory_text text, void *arg, uint64_t page_bytes);

/* ---- the parts ---- */

/** /proc/modules */
void modules_parse(struct advice_input *in, const char *text);
/** /proc/sys/fs/dentry-state and inode-nr. The largest numbers of several calls count, but unused dentries are the
 * latest. */
void dentry_state_parse(struct advice_input *in, const char *text);
void inode_nr_parse(struct advice_input *in, const char *text);
/** /proc/cmdline and /proc/sys/kernel/osrelease */
void command_line_parse(struct advice_input *in, const char *text);
void release_parse(struct advice_input *in, const char *text);

#endif
