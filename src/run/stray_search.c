/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/stray_search.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/guard.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"

/* the time between two searches is at least this many times the duration of the first */
#define WAIT_SHARE       3
#define COST_SHARE_FIRST 100
#define COST_SHARE_LAST  2000
#define COST_LEAST_NS    2000000u /* a cheaper search counts as one of this cost */
#define WAIT_LAST_NS     10000000000u
#define POLL_NS          20000000u /* interval of checking whether a search has ended */

enum state { IDLE, SEARCHING, FOUND, STOPPED };

struct stray_search {
    const char *dir;
    pthread_t thread;
    bool has_thread; /* false: searches run in the calling thread */
    uint64_t next;   /* when the next search begins (CLOCK_MONOTONIC) */
    /* the pause before it, in multiples of the processor time of the last search; 0 at first */
    uint64_t share;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum state state;           /* under the lock */
    struct ledger_strays found; /* belongs to the thread while SEARCHING, else to the recorder */
    uint64_t took_ns, cost_ns;  /* belong to the same */
};

static uint64_t worked_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID) + guard_cpu_ns();
}

static void search(struct stray_search *s)
{
    uint64_t began = clock_ns(CLOCK_MONOTONIC), worked = worked_ns();
    ledger_scan_strays(s->dir, &s->found);
    s->took_ns = clock_ns(CLOCK_MONOTONIC) - began;
    uint64_t now = worked_ns();
    /* the time of a helper thread that hangs is not counted */
    s->cost_ns = now > worked + COST_LEAST_NS ? now - worked : COST_LEAST_NS;
}

static void *serve(void *stray_search)
{
    struct stray_search *s = stray_search;
    pthread_mutex_lock(&s->lock);
    while (s->state != STOPPED) {
        if (s->state != SEARCHING) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        search(s);
        pthread_mutex_lock(&s->lock);
        s->state = FOUND;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void set_state(struct stray_search *s, enum state state)
{
    pthread_mutex_lock(&s->lock);
    s->state = state;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void begin(struct stray_search *s)
{
    if (!s->has_thread)
        search(s);
    set_state(s, s->has_thread ? SEARCHING : FOUND);
}

static enum state state_of(struct stray_search *s, bool wait)
{
    pthread_mutex_lock(&s->lock);
    while (wait && s->state == SEARCHING)
        pthread_cond_wait(&s->changed, &s->lock);
    enum state state = s->state;
    pthread_mutex_unlock(&s->lock);
    return state;
}

struct stray_search *stray_search_new(const char *dir)
{
    struct stray_search *s = mem_alloc(sizeof(*s));
    sigset_t all, before;
    s->dir = dir;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    sigfillset(&all); /* the recorder handles the signals */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    s->has_thread = !pthread_create(&s->thread, NULL, serve, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s;
}

void stray_search_free(struct stray_search *s)
{
    state_of(s, true);
    set_state(s, STOPPED);
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    ledger_strays_release(&s->found);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Decides when the next search begins. */
static void plan(struct stray_search *s)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC), least = s->took_ns * WAIT_SHARE;
    if (!s->share || s->found.list.len || s->found.marks.len)
        s->share = COST_SHARE_FIRST;
    else if (s->share < COST_SHARE_LAST)
        s->share += s->share / 2;
    uint64_t wait = s->cost_ns * s->share < WAIT_LAST_NS ? s->cost_ns * s->share : WAIT_LAST_NS;
    s->next = now + (wait > least ? wait : least);
}

static bool take(struct stray_search *s, bool wait, struct ledger_strays *found)
{
    if (state_of(s, wait) != FOUND)
        return false;
    plan(s);
    *found = s->found;
    s->found = (struct ledger_strays){.list = {0}};
    set_state(s, IDLE);
    return true;
}

bool stray_search_step(struct stray_search *s, uint64_t now, struct ledger_strays *found)
{
    if (take(s, false, found))
        return true;
    if (now >= s->next && state_of(s, false) == IDLE)
        begin(s);
    return false;
}

void stray_search_finish(struct stray_search *s, struct ledger_strays *found)
{
    struct ledger_strays earlier = {.list = {0}};
    take(s, true, &earlier);
    begin(s);
    take(s, true, found);
    vec_each (struct ledger_entry, e, &earlier.list)
        *vec_push(&found->list) = *e;
    vec_each (struct ledger_mark, mark, &earlier.marks)
        *vec_push(&found->marks) = *mark;
    vec_release(&earlier.list);
    vec_release(&earlier.marks);
}

uint64_t stray_search_due(struct stray_search *s, uint64_t now)
{
    return state_of(s, false) == SEARCHING ? now + POLL_NS : s->next;
}
