/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_EXEC_H
#define AGENT_EXEC_H

/*
 * What our target starts is a guest too: a program that cannot carry the agent starts without it.
 *
 * Runs in: target. Threads: any, vfork children and signal handlers included; no malloc.
 */

/** Finds the functions that the hooks stand in front of; from boot. */
void exec_init(void);
void system_popen_init(void);
#endif
