/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/memleak/memleak_cost.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/draw.h"
#include "bpf/memleak.h"

#define PATIENCE_NS 5000000000u

/* ---- counters of the CPUs ---- */

static struct memleak_cpu *new_cpus(int *n)
{
    *n = libbpf_num_possible_cpus();
    *n = *n > 0 ? *n : 1;
    return mem_array((size_t)*n, sizeof(struct memleak_cpu));
}

static struct memleak_hits read_hits(const struct sys_session *s)
{
    struct memleak_hits sum = {.returns = 0};
    const uint32_t zero = 0;
    int n;
    struct memleak_cpu *cpus = new_cpus(&n);
    if (!bpf_map_lookup_elem(sys_map(s, "cpus"), &zero, cpus))
        for (int i = 0; i < n; i++) {
            sum.returns += cpus[i].returns;
            for (int kind = 0; kind < PROBE_PLACE_KINDS; kind++) {
                sum.calls[kind] += cpus[i].calls[kind];
                sum.frees[kind] += cpus[i].frees[kind];
            }
        }
    free(cpus);
    return sum;
}

/* Each CPU begins with a gap of its own: with none, its first object would always be sampled. */
static int begin_cpus(const struct sys_session *s, uint64_t period)
{
    const uint32_t zero = 0;
    uint64_t seed = (uint64_t)clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)(uintptr_t)&zero;
    int n;
    struct memleak_cpu *cpus = new_cpus(&n);
    for (int i = 0; i < n; i++)
        cpus[i].left = (int64_t)draw_gap(draw_next(&seed), period);
    const int bad = bpf_map_update_elem(sys_map(s, "cpus"), &zero, cpus, BPF_ANY);
    free(cpus);
    return bad;
}

static struct memleak_hits between(const struct memleak_hits *from, const struct memleak_hits *to)
{
    struct memleak_hits d = {.returns = to->returns - from->returns};
    for (int kind = 0; kind < PROBE_PLACE_KINDS; kind++) {
        d.calls[kind] = to->calls[kind] - from->calls[kind];
        d.frees[kind] = to->frees[kind] - from->frees[kind];
    }
    return d;
}

static uint64_t calls_of(const struct memleak_hits *h)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < PROBE_PLACE_KINDS; kind++)
        sum += h->calls[kind];
    return sum;
}

static uint64_t frees_of(const struct memleak_hits *h)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < PROBE_PLACE_KINDS; kind++)
        sum += h->frees[kind];
    return sum;
}

/* Calls whose return was noted cost more; they are spread over the kinds as all calls are. */
static double cost_ns(const struct alloc_prices *p, const struct memleak_hits *h)
{
    const double calls = (double)calls_of(h), returned = calls > 0 ? fmin((double)h->returns / calls, 1) : 0;
    double ns = 0;
    for (int kind = 0; kind < PROBE_PLACE_KINDS; kind++)
        ns += (double)h->calls[kind] *
                  (returned * (double)p->call_ns[kind] + (1 - returned) * (double)p->skipped_ns[kind]) +
              (double)h->frees[kind] * (double)p->free_ns[kind];
    return ns;
}

int memleak_cost_begin(struct memleak_cost *c, struct sys_session *s, struct alloc_processes *all,
                       uint64_t period, struct error *e)
{
    int bad = begin_cpus(s, period);
    bad = bad ? bad : alloc_prices_measure(&c->prices, s, all);
    bad = bad ? bad : begin_cpus(s, period);
    if (bad)
        return error_set(e, -bad, "cannot measure what probes cost: %s", strerror(-bad));
    c->told_ns = c->looked_ns = clock_ns(CLOCK_MONOTONIC);
    return 0;
}

void memleak_cost_release(struct memleak_cost *c)
{
    alloc_prices_release(&c->prices);
}

/* ---- what is said ---- */

/* "0.8 us", or "0.8 to 9.8 us" if not all places are alike. */
static void add_range(struct buf *b, const uint64_t ns[PROBE_PLACE_KINDS])
{
    uint64_t least = UINT64_MAX, most = 0;
    for (int kind = 0; kind < PROBE_PLACE_KINDS; kind++) {
        most = ns[kind] > most ? ns[kind] : most;
        least = ns[kind] && ns[kind] < least ? ns[kind] : least;
    }
    if (least < most)
        buf_printf(b, "%.1f to ", (double)least / 1000);
    buf_printf(b, "%.1f us", (double)most / 1000);
}

void memleak_cost_say_before(const struct memleak_cost *c, const struct alloc_processes *all, struct buf *b)
{
    size_t n, processes = 0, calls = 0, frees = 0;
    const struct alloc_process *p = alloc_processes_all(all, &n);
    for (size_t i = 0; i < n; i++) {
        processes += !p[i].ended;
        calls += p[i].ended ? 0 : p[i].calls;
        frees += p[i].ended ? 0 : p[i].frees;
    }
    buf_printf(b, "%zu process%s, %zu probes on functions that allocate (", processes,
               processes == 1 ? "" : "es", calls);
    add_range(b, c->prices.skipped_ns);
    buf_addstr(b, " a call, ");
    add_range(b, c->prices.call_ns);
    buf_printf(b, " with its return), %zu on functions that free (", frees);
    add_range(b, c->prices.free_ns);
    buf_addstr(b, ")\n");
}

void memleak_cost_say(struct memleak_cost *c, struct sys_session *s, struct buf *b)
{
    const struct memleak_hits now = read_hits(s), since = between(&c->told, &now);
    const uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);
    const double seconds = (double)(time_ns - c->told_ns) / 1e9;
    if (seconds > 0)
        buf_printf(b, "probes: %.0f calls and %.0f frees a second, which took %.2f %% of a CPU\n",
                   (double)calls_of(&since) / seconds, (double)frees_of(&since) / seconds,
                   cost_ns(&c->prices, &since) / seconds / 1e7);
    c->told = now;
    c->told_ns = time_ns;
}

/* ---- the limit ---- */

static uint64_t cpu_ns_of(const struct alloc_processes *all)
{
    size_t n;
    uint64_t sum = 0;
    const struct alloc_process *p = alloc_processes_all(all, &n);
    for (size_t i = 0; i < n; i++) {
        clockid_t clock;
        struct timespec t;
        if (!p[i].ended && !clock_getcpuclockid(p[i].pid, &clock) && !clock_gettime(clock, &t))
            sum += (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    }
    return sum;
}

bool memleak_cost_exceeds(struct memleak_cost *c, struct sys_session *s, const struct alloc_processes *all,
                          struct buf *b)
{
    const struct memleak_hits now = read_hits(s), since = between(&c->looked, &now);
    const uint64_t time_ns = clock_ns(CLOCK_MONOTONIC), cpu_ns = cpu_ns_of(all);
    /* A process that has ended is missing from the sum: then there is no comparison. */
    const bool known = cpu_ns > c->looked_cpu_ns && c->looked_cpu_ns;
    const double percent =
        known ? cost_ns(&c->prices, &since) * 100 / (double)(cpu_ns - c->looked_cpu_ns) : 0;
    c->looked = now;
    c->looked_ns = time_ns;
    c->looked_cpu_ns = cpu_ns;
    if (!c->limit_percent || percent <= c->limit_percent) {
        c->above_ns = 0;
        return false;
    }
    c->above_ns = c->above_ns ? c->above_ns : time_ns;
    if (time_ns - c->above_ns < PATIENCE_NS)
        return false;
    buf_printf(
        b,
        "the probes were removed: they took %.0f %% of the processes' CPU time for 5 s, and --max-cost is "
        "%.0f; live memory is what it was then (a larger --period costs less)\n",
        fmin(percent, 100), c->limit_percent);
    return true;
}
