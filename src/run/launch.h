/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_LAUNCH_H
#define RUN_LAUNCH_H

/*
 * Starts a command with the agent. Its terminal, process group, stdin, signal dispositions and signal mask
 * are the same as without allium. SIGINT and SIGQUIT are left to the command; SIGTERM and SIGHUP are passed
 * on to it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <signal.h>

#include "base/error.h"

struct launch_options {
    const char *agent; /* path of the agent, as LD_PRELOAD takes it; NULL: the command runs without one */
    const char *dir;   /* directory of the ledgers */
    uint64_t period_bytes;
    uint64_t ledger_limit_bytes; /* 0: the agent's default */
    bool follow;                 /* observe children, too */
    bool sites;                  /* keep accounts of call sites */
    bool traces;                 /* trace events into rings */
    bool flight;                 /* which overwrite their oldest events */
    const char *trace_options;   /* of the rings, ",buffer=BYTES,clock=mono"; NULL: the agent's defaults */
    const char *events;          /* which: wire/event_list.h; NULL: those of the agent */
    const char *wrappers;        /* patterns of wrappers besides the built-in ones; NULL: none */
    char **argv;                 /* ends with NULL */
};

struct launch {
    pid_t pid;
    int process_fd; /* readable when the command has ended */
    int signal_fd;  /* readable when there is a signal to pass on */
    int gate_fd, answer_fd;
    sigset_t handled; /* signals that arrive at signal_fd */
    /* signals from the terminal: meant for the command, and added to signal_fd once it has ended */
    sigset_t after;
};

/**
 * Forks. The child waits at the gate, so that everything can be prepared for its pid. Returns 0 or -errno.
 */
int launch_prepare(struct launch *l, const struct launch_options *o, struct error *e);
/** Lets the command begin. Returns 0 or -errno; -ENOENT and -EACCES are the errors of exec. */
int launch_go(struct launch *l, const struct launch_options *o, struct error *e);
/** Passes on the signals that arrived at signal_fd. */
void launch_pass_signals(const struct launch *l);
/** Called when the command has ended: from now on an interrupt is meant for allium, and makes signal_fd
 * readable. */
void launch_handle_interrupts(struct launch *l);
/** Reaps the command, which has ended. Returns its wait status. */
int launch_reap(const struct launch *l);
/** Closes all descriptors. A child that still waits at the gate ends. */
void launch_release(struct launch *l);

/* What ALLIUM_SITES asks of the full agent: the bits LEDGER_WITH_* of wire/ledger_make.h. */
enum launch_full { LAUNCH_SITES = 1, LAUNCH_TRACE = 2, LAUNCH_FLIGHT = 4, LAUNCH_TRACE_LATER = 8 };

/** The agent that only samples, and the agent that also keeps accounts of call sites. */
enum launch_agent { LAUNCH_AGENT_DEFAULT, LAUNCH_AGENT_FULL };

/**
 * Finds the file of the agent, beside this executable or where it was installed. The caller frees the path.
 * Returns 0, or -errno with a line.
 */
int launch_find_agent_file(enum launch_agent which, char **path, struct error *e);
/** Finds the agent and returns its path in the form for LD_PRELOAD: it may contain $LIB, which the loader
 * expands. */
int launch_find_agent(enum launch_agent which, char **path, struct error *e);

#endif
