/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_EXEC_SCRATCH_H
#define AGENT_EXEC_SCRATCH_H

/*
 * The working memory of one call of a hook in exec.c: a mapping of its own, because the stack of the caller may be
 * small and the environment may be large.
 *
 * Runs in: target. Threads: any, vfork children and signal handlers included; no malloc. Not after seccomp, because it
 * makes system calls.
 * Owns: the mapping, until exec_scratch_release() or a successful exec. If a vfork child executes a program, its
 * mapping stays in the memory of its parent, until the next exec_scratch_take() there removes it.
 */

#include <stddef.h>
#include <stdint.h>

#include "agent/exec/preload_env.h"
#include "base/sigsafe/readable.h"
#include "wire/ledger_make.h"
#include "wire/preload_check.h"

#define EXEC_SCRATCH_PATH_BYTES 1024u

struct exec_scratch {
    size_t bytes;              /* of the mapping */
    struct exec_leftover *own; /* the entry for a vfork child's mapping; NULL: the caller is no vfork child */
    struct preload_check check;
    struct preload_env env;
    struct readable readable; /* the pages of the caller's arguments that were found readable */
    char path[EXEC_SCRATCH_PATH_BYTES];
    char dir[LEDGER_PATH_BYTES];
    _Alignas(16) char rest[]; /* the environment of the new program */
};

/** Returns new working memory. NULL: no memory, or too many vfork children are executing programs at once. */
ONE_COPY struct exec_scratch *exec_scratch_take(void);
/** Makes `rest` large enough for `bytes`; may move the mapping, and so change *s. False: no memory; *s is unchanged. */
ONE_COPY bool exec_scratch_reserve(struct exec_scratch **s, size_t bytes);
/** Unmaps the working memory. */
ONE_COPY void exec_scratch_release(struct exec_scratch *s);

#endif
