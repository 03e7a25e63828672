/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/bench_run.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "bench/bench_child.h"

#define BATCHES     5u
#define BATCH_NS    100000u
#define HOT_SHOTS   200u
#define APART_SHOTS 20u
#define COLD_SHOTS  3u

unsigned bench_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

/* One conversation with a helper. */
struct turn {
    struct bench_child child;
    struct bench_row *row;
    struct bench_reply reply;
};

static int ask(struct turn *t, enum bench_mode mode, uint32_t shots, struct error *e)
{
    const struct bench_request q = {.mode = mode, .shots = shots, .target_ns = BATCH_NS};
    struct bench_row *row = t->row;
    const int bad = bench_child_ask(&t->child, &q, &t->reply, e);
    if (bad)
        return bad;
    row->expected += t->reply.expected;
    row->hits += t->reply.hits;
    row->lost += t->reply.lost;
    row->bytes += t->reply.bytes;
    row->dropped_shots += t->reply.n_dropped;
    return 0;
}

static int take_batches(struct turn *t, struct bench_batches *b, struct error *e)
{
    for (unsigned i = 0; i < BATCHES; i++) {
        const int bad = ask(t, BENCH_BATCH, 0, e);
        if (bad)
            return bad;
        bench_batches_add(b, t->reply.bare_ns, t->reply.ns, t->reply.is_switched, t->reply.is_apart);
    }
    bench_batches_end_turn(b);
    return 0;
}

static int take_shots(struct turn *t, enum bench_mode mode, uint32_t n, struct bench_shots *to,
                      struct error *e)
{
    const int bad = ask(t, mode, n, e);
    if (!bad)
        bench_shots_add(to, t->reply.bare_shots_ns, t->reply.shots_ns, t->reply.n_shots);
    return bad;
}

/* Returns 0, also if the row cannot be measured: then it says why. */
static int take_turn(const struct bench_options *o, struct bench_row *row, struct bench_batches *batches,
                     bool with_shots, struct error *e)
{
    struct turn t = {.row = row};
    int bad = bench_child_start(&t.child, o->helper, row->mechanism, row->sink, batches->threads, e);
    if (bad == -ENOTSUP) {
        row->unavailable = mem_strdup(e->text);
        return 0;
    }
    if (bad)
        return bad;
    row->events_per_call = t.child.hello.events_per_call;
    row->knows_hits = t.child.hello.knows_hits;
    bad = take_batches(&t, batches, e);
    if (!bad && with_shots)
        bad = take_shots(&t, BENCH_SINGLE, HOT_SHOTS, &row->hot, e);
    if (!bad && with_shots)
        bad = take_shots(&t, BENCH_ISOLATED, APART_SHOTS, &row->isolated, e);
    if (!bad && with_shots)
        bad = take_shots(&t, BENCH_COLD, COLD_SHOTS, &row->cold, e);
    bench_child_end(&t.child);
    if (bad) {
        row->unavailable = mem_strdup(e->text);
        bad = 0;
    }
    return bad;
}

static int take_row(const struct bench_options *o, struct bench_row *row, struct error *e)
{
    const int bad = row->unavailable ? 0 : take_turn(o, row, &row->alone, true, e);
    if (bad || row->unavailable || row->together.threads < 2)
        return bad;
    return take_turn(o, row, &row->together, false, e);
}

static void begin(const struct bench_options *o, struct bench_result *out)
{
    *out = (struct bench_result){.cpus = bench_cpus(), .threads = o->threads};
    for (const struct bench_floor *f = bench_floor_list; f->name; f++) {
        struct bench_row *row = vec_push(&out->floors);
        bench_row_init(row, f->key, "none", NULL, 1);
        row->label = f->name;
        row->alone.threads = f->threads;
        if (f->threads > out->cpus)
            row->unavailable =
                mem_strdup("this process may use one CPU only: permit it more, see taskset(1)");
    }
    vec_each (const struct bench_pair, p, &o->pairs)
        bench_row_init(vec_push(&out->rows), p->mechanism->name, p->sink->name,
                       bench_floor_of(p->mechanism, p->sink), o->threads);
}

int bench_run(const struct bench_options *o, struct bench_result *out, struct error *e)
{
    const uint64_t began = clock_ns(CLOCK_MONOTONIC);
    int bad = 0;
    begin(o, out);
    const size_t n = out->floors.len + out->rows.len;
    do {
        for (size_t i = 0; i < n && !bad; i++) {
            struct bench_row *row =
                i < out->floors.len ? &out->floors.at[i] : &out->rows.at[i - out->floors.len];
            bad = take_row(o, row, e);
            const double share = fmax((double)(clock_ns(CLOCK_MONOTONIC) - began) / (double)o->time_ns,
                                      out->turns ? 0 : (double)(i + 1) / (double)n * 0.01);
            if (o->progress)
                o->progress(fmin(share, 1));
        }
        out->turns++;
    } while (!bad && clock_ns(CLOCK_MONOTONIC) - began < o->time_ns);
    out->seconds = (double)(clock_ns(CLOCK_MONOTONIC) - began) / 1e9;
    return bad;
}
