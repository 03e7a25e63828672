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
 * mapping stays in the memory that it shared with its parent, where the next exec_scratch_take() removes it.
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
    struct exec_leftover *own; /* of a vfork child; NULL: the caller is none */
    struct preload_check check;
    struct preload_env env;
    struct readable readable; /* pages of the caller's arguments */
    char path[EXEC_SCRATCH_PATH_BYTES];
    char dir[LEDGER_PATH_BYTES];
    _Alignas(16) char rest[]; /* the environment of the new program */
};

/** Returns new working memory. NULL: no memory, or too many vfork children are executing programs. */
ONE_COPY struct exec_scratch *exec_scratch_take(void);
/** Makes `rest` large enough for `bytes`. This may change *s. False: no memory; *s is as it was. */
ONE_COPY bool exec_scratch_reserve(struct exec_scratch **s, size_t bytes);
ONE_COPY void exec_scratch_release(struct exec_scratch *s);

#endif
