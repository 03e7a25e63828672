/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/faults_command.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "cli/intervals.h"
#include "cli/pager.h"
#include "cli/source.h"
#include "collect/accounts/object_faults.h"
#include "view/accounts/faults_view.h"

#define STEP_MS 2

/* All that was counted. */
struct watched {
    const struct accounts_show *s;
    uint64_t duration_ns;
    struct accounts accounts;
    struct account_rows places, rows; /* that have faults, and fit */
    struct account_sum total;         /* of all places */
    struct account_faults_rest rest;
    double seconds;
    bool user_alone;
};

/* ---- counting ---- */

/* Counts for the duration, or until the process ends or a signal comes: what was counted so far is shown then. */
static int count(struct watched *w, struct object_faults *f, struct error *e)
{
    sigset_t before;
    struct intervals_loop loop;
    sigprocmask(SIG_BLOCK, NULL, &before);
    int bad = intervals_begin(&loop, &(struct intervals){.duration_ns = w->duration_ns}, NULL);
    if (bad)
        return error_set(e, -bad, "cannot wait for signals: %s", strerror(-bad));
    while (intervals_next(&loop) != INTERVALS_OVER && !object_faults_step(f, STEP_MS))
        ;
    w->seconds = (double)(clock_ns(CLOCK_MONOTONIC) - loop.began_ns) / 1e9;
    object_faults_finish(f);
    intervals_end(&loop);
    sigprocmask(SIG_SETMASK, &before, NULL);
    w->rest = object_faults_rest(f);
    w->user_alone = object_faults_user_alone(f);
    return 0;
}

static void choose(struct watched *w)
{
    struct account_rows all = {0};
    size_t kept = 0;
    account_rows_join(&w->places, NULL, &w->accounts, 0);
    w->total = account_rows_total(&w->places, ACCOUNT_AFTER);
    if (w->s->view.query)
        account_rows_keep(&w->places, w->s->view.query, w->s->texts);
    account_rows_group(&all, &w->places, w->s->view.shape.group, w->s->texts);
    vec_each (const struct account_row, r, &all)
        if (account_faults(&r->of[ACCOUNT_AFTER]))
            all.at[kept++] = *r;
    all.len = kept;
    w->rows = all;
}

static int read_all(struct watched *w, struct error *e)
{
    const struct accounts_kind *kind = w->s->kind;
    pid_t pid = source_pid(w->s->sources[0]);
    struct object_faults *f;
    struct object_lookup_where where;
    int bad = kind->find_objects(&where, pid, e);
    bad = bad ? bad : object_faults_open(&f, pid, &where, e);
    if (bad)
        return bad;
    bad = count(w, f, e);
    bad = bad ? bad : kind->read(&w->accounts, w->s->texts, pid, f, w->s->symbols, e);
    object_faults_close(f);
    if (!bad)
        choose(w);
    return bad;
}

int faults_command(const struct accounts_show *s, uint64_t duration_ns)
{
    struct watched w = {.s = s, .duration_ns = duration_ns};
    struct error e = {""};
    int code = read_all(&w, &e) ? command_fail(EXIT_FAILED, "%s", e.text) : -1;
    if (code < 0) {
        struct faults_view view = {.form = &s->view,
                                   .process = &w.accounts.processes.at[0],
                                   .rows = &w.rows,
                                   .total = &w.total,
                                   .rest = &w.rest,
                                   .seconds = w.seconds,
                                   .user_alone = w.user_alone,
                                   .fits = w.places.len};
        struct sink out = pager_sink(s->paged);
        faults_view_write(&out, &view, s->texts, s->notes);
        code = pager_written(&out, EXIT_DONE);
    }
    accounts_release(&w.accounts);
    vec_release(&w.places);
    vec_release(&w.rows);
    return code;
}
