/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"

#define DELAYED_MS_MAX 10000 /* extra time for a call that only waits for a processor */

/* A helper thread and its current call. If guard_run() abandons the thread, the thread frees this record. */
struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    guarded_fn *call; /* NULL: nothing to do */
    void *work;
    bool abandoned; /* guard_run() has timed out and does not wait for the call any more */
    pid_t tid;      /* 0: the thread has not started to run yet */
};

static _Thread_local struct worker *current; /* the helper of this thread; NULL: none yet */

static void release(struct worker *w)
{
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w->work);
    free(w);
}

static void *serve(void *worker)
{
    struct worker *w = worker;
    pthread_mutex_lock(&w->lock);
    w->tid = gettid();
    while (!w->abandoned) {
        if (!w->call) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        guarded_fn *call = w->call;
        pthread_mutex_unlock(&w->lock);
        call(w->work);
        pthread_mutex_lock(&w->lock);
        w->call = NULL;
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    release(w);
    return NULL;
}

static struct worker *start(void)
{
    struct worker *w = mem_alloc(sizeof(*w));
    pthread_condattr_t monotonic;
    pthread_t thread;
    sigset_t all, before;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all); /* so that signal handlers run in the other threads */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool bad = pthread_create(&thread, NULL, serve, w) != 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (bad) {
        release(w);
        return NULL;
    }
    pthread_detach(thread);
    w->thread = thread;
    return w;
}

static struct timespec after(unsigned ms)
{
    uint64_t due_ns = clock_ns(CLOCK_MONOTONIC) + ms * 1000000ull;
    return (struct timespec){.tv_sec = (time_t)(due_ns / 1000000000u),
                             .tv_nsec = (long)(due_ns % 1000000000u)};
}

static void wait_for(struct worker *w, unsigned ms)
{
    struct timespec until = after(ms);
    int bad = 0;
    while (w->call && bad != ETIMEDOUT)
        bad = pthread_cond_timedwait(&w->changed, &w->lock, &until);
}

/* Returns whether the helper is not asleep, but waits for a processor. Releases the lock while it reads the state, so
 * that the helper is not asleep because it waits for the lock. */
static bool is_delayed(struct worker *w)
{
    char path[64], state = '?';
    pid_t tid = w->tid;
    if (!tid)
        return true;
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    pthread_mutex_unlock(&w->lock);
    FILE *file = fopen(path, "re");
    bool known = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    if (file)
        fclose(file);
    pthread_mutex_lock(&w->lock);
    return known && state == 'R';
}

int guard_run(guarded_fn *call, void *work, size_t bytes, unsigned ms)
{
    struct worker *w = current ? current : start();
    if (!w) {
        call(work);
        return 0;
    }
    current = w;
    pthread_mutex_lock(&w->lock);
    w->work = mem_alloc(bytes);
    memcpy(w->work, work, bytes);
    w->call = call;
    pthread_cond_signal(&w->changed);
    wait_for(w, ms);
    for (unsigned waited = 0; w->call && waited < DELAYED_MS_MAX && is_delayed(w); waited += ms)
        wait_for(w, ms);
    w->abandoned = w->call != NULL;
    int bad = w->abandoned ? -ETIMEDOUT : 0;
    if (w->abandoned) {
        current = NULL;
    } else {
        memcpy(work, w->work, bytes);
        free(w->work);
        w->work = NULL;
    }
    pthread_mutex_unlock(&w->lock);
    return bad;
}

uint64_t guard_cpu_ns(void)
{
    clockid_t clock;
    return current && !pthread_getcpuclockid(current->thread, &clock) ? clock_ns(clock) : 0;
}
