/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_EXEC_H
#define AGENT_EXEC_H

/*
 * Hooks of the functions that start programs. A program that can run with the agent (wire/preload_check.h) is started
 * with the agent, any other program without it.
 *
 * Runs in: target. Threads: any. The hooks of the exec family and of posix_spawn() may be called by vfork children and
 * signal handlers; they call no malloc().
 */

/** Finds the real functions that the hooks of exec.c call. Called by boot_agent(). */
void exec_init(void);
/** Finds the real functions that the hooks of system_popen.c call. Called by boot_agent(). */
void system_popen_init(void);
#endif
