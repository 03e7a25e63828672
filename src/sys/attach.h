/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ATTACH_H
#define SYS_ATTACH_H

/*
 * Chooses the attach method of a tool on this kernel: each one is checked against the kernel's BTF, loaded
 * and attached, until one works.
 *
 * Runs in: the tool. Threads: one. Owns: nothing; object, links and refusals belong to the session.
 */

#include "sys/session.h"

/**
 * Loads and attaches the programs with the best method that works here, or with the requested one: s->method.
 * s->refused gets the methods that do not work. Errors are those of sys_open(); then no object is left.
 */
int attach_by_best_method(struct sys_session *s, struct error *e);

#endif
