/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_EXEC_H
#define AGENT_EXEC_H

/*
 * Hooks of the functions that start programs. A program that can carry the agent (wire/preload_check.h) is started with
 * it, any other without.
 *
 * Runs in: target. Threads: any, vfork children and signal handlers included; no malloc.
 */

/** Find the real functions that the hooks call. Called by boot_agent(). */
void exec_init(void);
void system_popen_init(void);
#endif
