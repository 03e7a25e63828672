/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/worker_thread.h"

#include <signal.h>

int worker_thread_start(pthread_t *out, void *(*work)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* file_map.h */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(out, NULL, work, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}
