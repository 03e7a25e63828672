/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ATTACH_H
#define SYS_ATTACH_H

/*
 * Which rung of a tool works here: each is judged by the kernel's BTF, loaded and attached, until one holds.
 *
 * Runs in: the tool. Threads: one. Owns: nothing; object, links and refusals are the session's.
 */

#include "sys/session.h"

/**
 * Loads and attaches the programs of the best rung that works here, or of the one that is asked for: s->rung;
 * s->refused has those that do not. Errors are those of sys_open(); then no object is left.
 */
int attach_by_best_method(struct sys_session *s, struct error *e);

#endif
