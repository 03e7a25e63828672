/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_ALERT_EXEC_H
#define RUN_ALERT_EXEC_H

/*
 * The command of `watch --exec`: run by /bin/sh when an alert comes true, one at a time, without anybody waiting for it.
 *
 * It gets the environment of allium and, besides, the variables of the alert; /dev/null to read from; and standard error
 * for what it prints, as standard output may be read by a program.
 *
 * Runs in: the tool. Threads: one. Owns: the child until it is reaped, and the alerts that wait, until hook_free().
 */

#include "base/error.h"

struct hook;

/** `command` is borrowed. Never NULL. */
struct hook *hook_new(const char *command);
/** A child that still runs is left alone. */
void hook_free(struct hook *h);

/** Takes the variables, an array of "NAME=VALUE" that ends with NULL (all of it from the heap), and runs the command with
 * them, now or when those before it are done. 0, or -errno with a line: it cannot be started. */
int hook_add(struct hook *h, char **variables, struct error *e);
/** A descriptor that is readable when the command has ended; -1: none runs, or it has none: see hook_patience_ms(). */
int hook_fd(const struct hook *h);
/** For how many ms to wait, at most, before the next hook_step(); -1: until the descriptor says so. `h` may be NULL. */
int hook_patience_ms(const struct hook *h);
/** Reaps the command if it has ended (*status is its wait status, else -1) and starts the next one. As hook_add(). */
int hook_step(struct hook *h, int *status, struct error *e);
/** Alerts that wait for their turn. */
unsigned hook_waiting(const struct hook *h);

#endif
