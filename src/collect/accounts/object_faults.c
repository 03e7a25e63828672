/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/object_faults.h"

#include <errno.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "collect/perf/page_faults.h"

#define RETRY_NS 1000000u /* if no object is found, it is looked up again this long after the fault */

struct object_faults {
    struct page_faults *faults;
    struct objects *objects;
    struct map by_account;
    struct VEC(struct object_faults_sum) sums;
    struct VEC(struct page_fault) early; /* faults for which no object was found so far */
    struct account_faults_rest rest;
    int bad;
};

static void add(struct object_faults *f, const struct page_fault *fault,
                const struct object_lookup_found *found)
{
    bool new;
    size_t at = map_put_u64(&f->by_account, found->account, f->sums.len, &new);
    if (new)
        vec_push(&f->sums);
    struct object_faults_sum *sum = &f->sums.at[at];
    sum->major += fault->major;
    sum->minor += !fault->major;
    sum->shared += found->shared;
}

static void look_up(struct object_faults *f, const struct page_fault *fault, bool again)
{
    struct object_lookup_found found;
    int bad = object_lookup_at(f->objects, fault->address, &found);
    f->bad = bad ? bad : f->bad;
    if (bad)
        f->rest.ended++;
    else if (found.account)
        add(f, fault, &found);
    else if (!again)
        *vec_push(&f->early) = *fault;
    else if (found.had_objects)
        f->rest.none++;
    else
        f->rest.elsewhere++;
}

static void take(void *arg, const struct page_fault *fault)
{
    look_up(arg, fault, false);
}

/* Looks up again the objects of faults that happened up to until_ns. */
static void retry_lookups(struct object_faults *f, uint64_t until_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->early.len; i++) {
        struct page_fault fault = f->early.at[i];
        if (fault.time_ns <= until_ns)
            look_up(f, &fault, true);
        else
            f->early.at[kept++] = fault;
    }
    f->early.len = kept;
}

int object_faults_open(struct object_faults **out, pid_t pid, const struct object_lookup_where *where,
                       struct error *e)
{
    struct object_faults *f = mem_alloc(sizeof(*f));
    int bad = object_lookup_open(&f->objects, pid, where, e);
    if (!bad)
        bad = page_faults_open(&f->faults, pid, e);
    if (bad)
        object_faults_close(f);
    else
        *out = f;
    return bad;
}

void object_faults_close(struct object_faults *f)
{
    page_faults_close(f->faults);
    object_lookup_close(f->objects);
    map_release(&f->by_account);
    vec_release(&f->sums);
    vec_release(&f->early);
    free(f);
}

int object_faults_step(struct object_faults *f, int timeout_ms)
{
    page_faults_wait(f->faults, timeout_ms);
    uint64_t until = clock_ns(CLOCK_MONOTONIC) - RETRY_NS;
    retry_lookups(f, until);
    page_faults_drain(f->faults, take, f);
    return f->bad == -ESRCH || !object_lookup_is_there(f->objects) ? -ESRCH : 0;
}

void object_faults_finish(struct object_faults *f)
{
    page_faults_drain(f->faults, take, f);
    nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
    retry_lookups(f, UINT64_MAX);
    f->rest.lost = page_faults_lost(f->faults);
}

struct object_faults_sum object_faults_of(const struct object_faults *f, uint32_t account)
{
    size_t at = map_get_u64(&f->by_account, account);
    return at == MAP_NONE ? (struct object_faults_sum){0} : f->sums.at[at];
}

struct account_faults_rest object_faults_rest(const struct object_faults *f)
{
    return f->rest;
}

bool object_faults_user_alone(const struct object_faults *f)
{
    return page_faults_user_alone(f->faults);
}
