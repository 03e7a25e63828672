/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_ALERT_EXEC_H
#define RUN_ALERT_EXEC_H

/*
 * Runs the command of `watch --exec`: by /bin/sh, when an alert becomes true, one at a time, in the
 * background.
 *
 * The command gets the environment of allium with the variables of the alert added, /dev/null as its input,
 * and standard error for its output, because another program may read allium's standard output.
 *
 * Runs in: the tool. Threads: one.
 * Owns: the child until it is reaped, and the waiting alerts, until alert_exec_free().
 */

#include "base/error.h"

struct alert_exec;

/** `command` is borrowed. Never returns NULL. */
struct alert_exec *alert_exec_new(const char *command);
/** Does not stop a child that still runs. */
void alert_exec_free(struct alert_exec *h);

/**
 * Runs the command with the variables, now or when the earlier ones are done. `variables` is a heap array of
 * heap strings "NAME=VALUE" that ends with NULL; the function takes it. Returns 0, or -errno with a line if
 * the command cannot be started.
 */
int alert_exec_add(struct alert_exec *h, char **variables, struct error *e);
/**
 * Returns a descriptor that is readable when the command has ended. -1: no command runs, or it has no
 * descriptor (see alert_exec_patience_ms()).
 */
int alert_exec_fd(const struct alert_exec *h);
/**
 * Returns how many ms to wait at most before the next alert_exec_step(); -1: until the descriptor is
 * readable. `h` may be NULL.
 */
int alert_exec_patience_ms(const struct alert_exec *h);
/**
 * Reaps the command if it has ended (*status becomes its wait status, else -1) and starts the next one.
 * Returns as alert_exec_add() does.
 */
int alert_exec_step(struct alert_exec *h, int *status, struct error *e);
/** Returns how many alerts wait for their turn. */
unsigned alert_exec_waiting(const struct alert_exec *h);

#endif
