/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/sum/sum_command.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "collect/ledger/ledger_dir.h"
#include "collect/trace/kernel_event_classes.h"
#include "collect/trace/sum_options.h"
#include "run/launch.h"
#include "run/sum/ring_sums.h"
#include "run/sum/sum_followed.h"
#include "run/trace/kernel_follow.h"

#define STEP_MS  50
#define ALIVE_NS 100000000u

struct session {
    const struct sum_command_options *o;
    struct launch launch;
    struct launch_options launch_options;
    char *dir, *agent;
    struct buf asked;              /* the sums to make, as options for the target */
    struct sum_followed *followed; /* NULL: the events are the kernel's */
    struct kernel_follow *kernel;
    struct ring_sums *of_kernel;
    struct sum_reports reports;
};

/* The next process that this one forks is the command. */
static int make_kernel_ready(struct session *s, struct error *e)
{
    struct kernel_follow_options o = {.ring_bytes = s->o->kernel_ring_bytes};
    kernel_event_class(s->o->spec->event, &o.groups);
    s->of_kernel = ring_sums_new(s->o->spec, NULL);
    int bad = kernel_follow_begin(&s->kernel, &o, e);
    bad = bad ? bad : kernel_follow_start_sums(s->kernel, s->of_kernel, e);
    s->launch_options = (struct launch_options){.argv = s->o->argv};
    return bad ? bad : launch_prepare(&s->launch, &s->launch_options, e);
}

static int make_ready(struct session *s, struct error *e)
{
    if (sum_spec_is_kernel(s->o->spec))
        return make_kernel_ready(s, e);
    const bool user = sum_spec_is_user(s->o->spec);
    int bad = launch_find_agent(user ? LAUNCH_AGENT_DEFAULT : LAUNCH_AGENT_FULL, &s->agent, e);
    if (!bad)
        bad = ledger_dir_make(&s->dir, e);
    if (bad)
        return bad;
    sum_options_add(s->o->spec, &s->asked);
    s->launch_options = (struct launch_options){.agent = s->agent,
                                                .dir = s->dir,
                                                .period_bytes = s->o->period_bytes,
                                                .follow = s->o->follow,
                                                .traces = !user,
                                                .trace_options = user ? NULL : buf_str(&s->asked),
                                                .events = user ? buf_str(&s->asked) : NULL,
                                                .argv = s->o->argv};
    s->followed = sum_followed_new(s->dir, s->o->spec, s->o->wrappers);
    return launch_prepare(&s->launch, &s->launch_options, e);
}

/* Reports what was summed until now. */
static void report(struct session *s, bool last)
{
    struct event_sums *sums = s->followed ? sum_followed_read(s->followed) : event_sums_new(s->o->spec);
    if (s->of_kernel)
        ring_sums_read(s->of_kernel, sums);
    sum_reports_give(&s->reports, sums, last);
}

/* Runs until the command has ended. */
static void watch(struct session *s)
{
    uint64_t harvested_ns = s->reports.began_ns;
    for (;;) {
        struct pollfd fds[] = {{.fd = s->launch.process_fd, .events = POLLIN},
                               {.fd = s->launch.signal_fd, .events = POLLIN}};
        poll(fds, 2, STEP_MS);
        if (fds[1].revents)
            launch_pass_signals(&s->launch);
        const uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (s->followed && now - harvested_ns >= ALIVE_NS) {
            sum_followed_harvest(s->followed);
            harvested_ns = now;
        }
        if (sum_reports_due(&s->reports))
            report(s, false);
        s->o->step(s->reports.arg);
        if (fds[0].revents)
            return;
    }
}

int sum_command(const struct sum_command_options *o, struct record_result *result, struct error *e)
{
    struct session s = {.o = o, .reports = o->reports, .asked = BUF_INIT};
    s.launch = (struct launch){.process_fd = -1, .signal_fd = -1, .gate_fd = -1, .answer_fd = -1};
    *result = (struct record_result){.stage = RECORD_NOT_STARTED};
    int bad = make_ready(&s, e);
    bad = bad ? bad : launch_go(&s.launch, &s.launch_options, e);
    if (bad && s.launch.pid) {
        result->stage = bad == -ENOENT ? RECORD_NOT_FOUND : RECORD_NOT_EXECUTABLE;
    } else if (!bad) {
        result->stage = RECORD_RAN;
        sum_reports_begin(&s.reports);
        watch(&s);
        result->wait_status = launch_reap(&s.launch);
        if (s.followed)
            sum_followed_harvest(s.followed);
        bad = kernel_follow_end(s.kernel, &result->kernel, e);
        s.kernel = NULL;
        report(&s, true);
    }
    kernel_follow_end(s.kernel, &result->kernel, NULL);
    ring_sums_free(s.of_kernel);
    sum_reports_end(&s.reports);
    sum_followed_free(s.followed);
    if (s.dir)
        ledger_run_remove(s.dir);
    launch_release(&s.launch);
    buf_release(&s.asked);
    free(s.dir);
    free(s.agent);
    return bad;
}
