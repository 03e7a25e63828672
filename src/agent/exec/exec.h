/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_EXEC_H
#define AGENT_EXEC_H

/*
 * Hooks of the functions that start programs: a program that can carry the agent gets it, another one starts without
 * it.
 *
 * Runs in: target. Threads: any, vfork children and signal handlers included; no malloc.
 */

/** Find the functions that the hooks forward to; from boot. */
void exec_init(void);
void system_popen_init(void);
#endif
