/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_WORKER_THREAD_H
#define RUN_WORKER_THREAD_H

/*
 * Threads that read while a command runs. They take no signals: these are the business of the thread that waits for
 * the command. SIGBUS alone is not blocked, as it comes from what the thread itself reads (base/file_map.h).
 *
 * Runs in: the tool.
 */

#include <pthread.h>

/** Starts a thread in which all signals but SIGBUS are blocked. Returns 0 or an errno, as pthread_create(3). */
int worker_thread_start(pthread_t *out, void *(*work)(void *), void *arg);

#endif
