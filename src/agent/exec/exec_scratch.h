/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_EXEC_SCRATCH_H
#define AGENT_EXEC_SCRATCH_H

/*
 * The working memory of one call of a hook in exec.c: a mapping of its own, because the stack of the caller may be
 * small and the environment may be large.
 *
 * Runs in: target. Threads: any, vfork children and signal handlers included; no malloc. Not after seccomp: it makes
 * system calls.
 * Owns: the mapping, until exec_scratch_release() or a successful exec. A vfork child that executes a program leaves
 * its mapping to the process whose memory it shared; the next exec_scratch_take() of any task in that memory removes
 * it.
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
    struct exec_leftover *own; /* the entry of a vfork child; NULL: another kind of caller */
    struct preload_check check;
    struct preload_env env;
    struct readable readable; /* what the caller passed */
    char path[EXEC_SCRATCH_PATH_BYTES];
    char dir[LEDGER_PATH_BYTES];
    _Alignas(16) char rest[]; /* the environment that is handed on */
};

/** A new scratch; NULL: no memory, or too many vfork children execute programs at this moment. */
ONE_COPY struct exec_scratch *exec_scratch_take(void);
/** Makes room for `bytes` in `rest`. The scratch may move. False: no memory, the scratch is as it was. */
ONE_COPY bool exec_scratch_reserve(struct exec_scratch **s, size_t bytes);
ONE_COPY void exec_scratch_release(struct exec_scratch *s);

#endif
