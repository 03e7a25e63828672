/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_LAUNCH_H
#define RUN_LAUNCH_H

/*
 * Starts a command with the agent and is a good parent to it: its terminal, process group, stdin, signal dispositions
 * and mask are as without us; SIGINT and SIGQUIT are left to it, SIGTERM and SIGHUP passed on.
 *
 * Runs in: the tool. Threads: one. Owns: the descriptors, until launch_release().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <signal.h>

#include "base/error.h"

struct launch_options {
    const char *agent; /* path of the agent, as LD_PRELOAD takes it */
    const char *dir;   /* where ledgers go */
    uint64_t period_bytes;
    uint64_t ledger_limit_bytes; /* 0: the agent's default */
    bool follow;                 /* children too */
    bool sites;                  /* accounts of call sites */
    const char *wrappers;        /* whose callers are sites, beside those that are built in; NULL: none */
    char **argv;                 /* ends with NULL */
};

struct launch {
    pid_t pid;
    int process_fd; /* readable when the command has ended */
    int signal_fd;  /* readable when there is a signal to pass on */
    int gate_fd, answer_fd;
    sigset_t heeded; /* what comes to signal_fd, and, once the command has ended, */
    sigset_t after;  /* what came to the terminal, and was the command's own affair */
};

/** Forks; the child waits at the gate, so that all can be made ready for its pid. 0 or -errno. */
int launch_prepare(struct launch *l, const struct launch_options *o, struct error *e);
/** Lets the command begin. 0, or -errno: -ENOENT and -EACCES are exec's own answers. */
int launch_go(struct launch *l, const struct launch_options *o, struct error *e);
/** Passes on what signal_fd has. */
void launch_pass_signals(const struct launch *l);
/** The command has ended: from now on an interrupt is meant for us, and makes signal_fd readable. */
void launch_heed_interrupts(struct launch *l);
/** Reaps the command, which has ended; its wait status. */
int launch_reap(const struct launch *l);
/** Closes what is open. A command that was never let go ends without a trace. */
void launch_release(struct launch *l);

/** The agent that samples, and the one that can also keep accounts of call sites. */
enum launch_agent { LAUNCH_AGENT_DEFAULT, LAUNCH_AGENT_FULL };

/**
 * Finds the file of the agent, beside this executable or where it was installed; the caller frees it. 0 or -errno with
 * a line.
 */
int launch_find_agent_file(enum launch_agent which, char **path, struct error *e);
/** Finds the agent and gives its path as LD_PRELOAD takes it: it may contain $LIB, which the loader expands. */
int launch_find_agent(enum launch_agent which, char **path, struct error *e);

#endif
