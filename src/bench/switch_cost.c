/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/switch_cost.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "bench/bench_child.h"
#include "bench/hooks/bench_switch.h"
#include "bench/kernel/kernel_event.h"
#include "bench/kernel/kernel_many.h"

/* The mechanisms that have a switch: in the helper, with this mechanism and sink, or in the kernel. */
static const struct switchable {
    const char *name, *mechanism, *sink;
    bool by_kernel;
} list[] = {
    {"branch", "branch", "off", false},
    {"nop", "nop", "off", false},
    {"xray", "xray", "off", false},
    {"int3", "int3", "off", false},
    {"uprobe-nop", "uprobe-nop", "off", true},
    {"usdt", "usdt", "off", true},
    {"lttng", "none", "lttng", false},
};

static bool is_chosen(const struct bench_options *o, const char *name)
{
    vec_each (const struct bench_pair, p, &o->pairs)
        if (!strcmp(p->mechanism, name) || !strcmp(p->sink, name))
            return true;
    return false;
}

static int ask_helper(struct bench_child *c, uint32_t sites, struct bench_switching_figures *out,
                      struct error *e)
{
    struct bench_reply r;
    const int bad = bench_child_ask(c, &(struct bench_request){.mode = BENCH_SWITCH, .shots = sites}, &r, e);
    if (!bad)
        *out = bench_switching_median(r.shots_ns, r.bare_shots_ns, r.n_shots);
    return bad;
}

/* ---- uprobes ---- */

/* One site is a perf event. Many sites are one attachment: to close as many perf events takes over a minute. */
static int attach(const struct kernel_probe_target *target, uint32_t sites, struct error *e)
{
    return sites == 1 ? kernel_event_open(target, &(struct perf_event_attr){0}, e)
                      : kernel_many_attach(target, sites, BENCH_SITE_BYTES, e);
}

static uint32_t since(uint64_t began_ns)
{
    const uint64_t took = clock_ns(CLOCK_MONOTONIC) - began_ns;
    return took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
}

static int ask_kernel(const struct bench_child *c, const char *helper, uint32_t sites,
                      struct bench_switching_figures *out, struct error *e)
{
    const struct kernel_probe_target target = {KERNEL_PROBE_ENTRY, c->pid, helper, c->hello.sites_offset};
    uint32_t on_ns[BENCH_SWITCHES], off_ns[BENCH_SWITCHES];
    for (uint32_t i = 0; i < BENCH_SWITCHES; i++) {
        uint64_t began = clock_ns(CLOCK_MONOTONIC);
        const int fd = attach(&target, sites, e);
        if (fd < 0)
            return -ENOTSUP;
        on_ns[i] = since(began);
        began = clock_ns(CLOCK_MONOTONIC);
        close(fd);
        off_ns[i] = since(began);
    }
    *out = bench_switching_median(on_ns, off_ns, BENCH_SWITCHES);
    return 0;
}

/* ---- all ---- */

static int measure(const struct bench_options *o, const struct switchable *s, struct bench_switching *out,
                   struct error *e)
{
    struct bench_child c;
    int bad = bench_child_start(&c, o->helper, s->mechanism, s->sink, 1, 0, e);
    if (bad)
        return bad;
    if (s->by_kernel) {
        bad = ask_kernel(&c, o->helper, BENCH_SWITCHING_FEW, &out->few, e);
        if (!bad)
            bad = ask_kernel(&c, o->helper, BENCH_SWITCHING_MANY, &out->many, e);
    } else {
        bad = ask_helper(&c, BENCH_SWITCHING_FEW, &out->few, e);
        if (!bad)
            bad = ask_helper(&c, BENCH_SWITCHING_MANY, &out->many, e);
    }
    bench_child_end(&c);
    return bad;
}

int switch_cost_measure(const struct bench_options *o, struct bench_switchings *out, struct error *e)
{
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        if (!is_chosen(o, list[i].name))
            continue;
        struct bench_switching *to = vec_push(out);
        *to = (struct bench_switching){list[i].name, {NAN, NAN}, {NAN, NAN}, NULL};
        const int bad = measure(o, &list[i], to, e);
        if (bad && bad != -ENOTSUP)
            return bad;
        if (bad)
            to->unavailable = mem_strdup(e->text);
    }
    return 0;
}
