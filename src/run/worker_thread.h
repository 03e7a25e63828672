/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_WORKER_THREAD_H
#define RUN_WORKER_THREAD_H

/*
 * Threads that read while a command runs. They take no signals: these are the business of the thread that waits for
 * the command.
 *
 * Runs in: the tool.
 */

#include <pthread.h>

/** Starts a thread in which all signals are blocked. Returns 0 or an errno, as pthread_create(3). */
int worker_thread_start(pthread_t *out, void *(*work)(void *), void *arg);

#endif
