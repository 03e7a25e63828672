/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_LIFE_H
#define AGENT_TRACER_LIFE_H

/*
 * The events of the group `life`: processes, threads and modules that begin and end, and programs that are executed.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stdint.h>

/** Called once, when tracing begins. */
void tracer_life_begin(void);
/** Called when new rings are there: writes that the process and the calling thread begin. */
void tracer_life_process_begins(void);
/** Called when the kernel's number of the calling thread has become known. */
void tracer_life_thread_begins(void);
/** Called when a call at `site` is new, on a path that tracer_begin_cold() began: its module may be new, too. */
void tracer_life_site(uintptr_t site);
/** Called in the same way after a walk: writes events of the modules in the ledger that have none yet. */
void tracer_life_modules_loaded(void);
/** Called when modules may have been unloaded. */
void tracer_life_modules_unloaded(void);
/** Called before the process, or a child that shares its memory, executes `path`; later, if that fails, with errno. */
void tracer_life_executes(const char *path, int error);

#endif
