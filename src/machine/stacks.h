/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MACHINE_STACKS_H
#define MACHINE_STACKS_H

/*
 * Frees what sys_stack_frames() keeps of stacks that collided.
 *
 * Runs in: the tool.
 */

#include "machine/session.h"

void stacks_release(struct sys_session *s);

#endif
