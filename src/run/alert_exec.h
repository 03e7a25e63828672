/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_ALERT_EXEC_H
#define RUN_ALERT_EXEC_H

/*
 * The command of `watch --exec`: run by /bin/sh when an alert comes true, one at a time, without anybody waiting for
 * it.
 *
 * It gets the environment of allium and, besides, the variables of the alert; /dev/null to read from; and standard
 * error for what it prints, as standard output may be read by a program.
 *
 * Runs in: the tool. Threads: one. Owns: the child until it is reaped, and the alerts that wait, until
 * alert_exec_free().
 */

#include "base/error.h"

struct alert_exec;

/** `command` is borrowed. Never NULL. */
struct alert_exec *alert_exec_new(const char *command);
/** A child that still runs is left alone. */
void alert_exec_free(struct alert_exec *h);

/** Takes the variables, an array of "NAME=VALUE" that ends with NULL (all of it from the heap), and runs the command
 * with them, now or when those before it are done. 0, or -errno with a line: it cannot be started. */
int alert_exec_add(struct alert_exec *h, char **variables, struct error *e);
/**
 * A descriptor that is readable when the command has ended; -1: none runs, or it has none: see
 * alert_exec_patience_ms().
 */
int alert_exec_fd(const struct alert_exec *h);
/**
 * For how many ms to wait, at most, before the next alert_exec_step(); -1: until the descriptor says so. `h` may be
 * NULL.
 */
int alert_exec_patience_ms(const struct alert_exec *h);
/**
 * Reaps the command if it has ended (*status is its wait status, else -1) and starts the next one. As alert_exec_add().
 */
int alert_exec_step(struct alert_exec *h, int *status, struct error *e);
/** Alerts that wait for their turn. */
unsigned alert_exec_waiting(const struct alert_exec *h);

#endif
