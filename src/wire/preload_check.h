/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_PRELOAD_CHECK_H
#define WIRE_PRELOAD_CHECK_H

/*
 * Can the program in a file carry the agent? Asked by the command before it starts one, and by the agent before its
 * target does: a program that cannot would end at its start, or print a complaint of the loader's.
 *
 * Runs in: the tool, and target: no malloc, no state, some 30 system calls for an ELF file. Threads: any, vfork children
 * and signal handlers included; 1.5 KiB of stack.
 */

#include "base/sigsafe/compiler.h"

enum carrier {
    PRELOAD_CHECK_YES,        /* or nothing speaks against it: what is no program, the kernel will refuse */
    PRELOAD_CHECK_PRIVILEGED, /* set-uid, set-gid, file capabilities: the loader ignores LD_PRELOAD */
    PRELOAD_CHECK_FOREIGN,    /* another architecture, word size or C library */
    PRELOAD_CHECK_STATIC,     /* no loader that could preload anything */
    PRELOAD_CHECK_SANITIZER,  /* replaces malloc itself, and ends if another library comes first */
    PRELOAD_CHECK_NO_AGENT,   /* its root directory has no agent: see agent/exec/exec.c */
    PRELOAD_CHECK_SEALED,     /* who starts it is under seccomp, and so will it be: likewise */
    PRELOAD_CHECK_HIDDEN,     /* carries it, but nobody of us may read its ledger: see run/ledger_tracker.c */
    PRELOAD_CHECK_KINDS
};

/** In a few words, for people: "statically linked". */
const char *preload_check_reason(enum carrier why);
/** `path`, relative to `dir_fd` (AT_FDCWD), as execveat(2) takes it; of a script, its interpreter is judged. */
ONE_COPY enum carrier preload_check_judge(int dir_fd, const char *path);
/** The same for a file that is open for reading. */
ONE_COPY enum carrier preload_check_judge_file(int fd);

#endif
