/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/sum/sum_process.h"

#include "collect/trace/kernel_event_classes.h"
#include "collect/trace/agent_events.h"
#include "run/sum/ring_sums.h"

struct session {
    const struct sum_process_options *o;
    struct sum_reports reports;
    struct ring_sums *sums;
};

static void report(struct session *s, bool last)
{
    struct event_sums *now = event_sums_new(s->o->spec);
    ring_sums_read(s->sums, now);
    sum_reports_give(&s->reports, now, last);
}

static void started(void *arg, const char *folder)
{
    struct session *s = arg;
    (void)folder;
    sum_reports_begin(&s->reports);
    if (s->o->started)
        s->o->started(s->o->pid);
}

static void step(void *arg)
{
    struct session *s = arg;
    if (sum_reports_due(&s->reports))
        report(s, false);
    s->o->step(s->reports.arg);
}

int sum_process(const struct sum_process_options *o, struct trace_attach_result *out, struct error *e)
{
    struct session s = {.o = o, .reports = o->reports, .sums = ring_sums_new(o->spec, o->wrappers)};
    struct trace_attach_options how = {.pid = o->pid,
                                       .sums = s.sums,
                                       .events = sum_spec_is_user(o->spec) ? o->spec->event : "alloc",
                                       .kernel_ring_bytes = o->kernel_ring_bytes,
                                       .duration_ns = o->duration_ns,
                                       .started = started,
                                       .step = step,
                                       .arg = &s};
    uint32_t n;
    const struct event_class *of_agent = agent_events(&n);
    if (sum_spec_is_kernel(o->spec))
        kernel_event_class(o->spec->event, &how.kernel_groups);
    for (uint32_t i = 0; i < n && !how.kernel_groups; i++)
        ring_sums_add_class(s.sums, &of_agent[i]);
    const int bad = trace_attach(&how, out, e);
    if (!bad)
        report(&s, true);
    sum_reports_end(&s.reports);
    ring_sums_free(s.sums);
    return bad;
}
