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
#include "bench/switch_cost.h"

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

/* A helper of a row, and what is attached to it. */
struct session {
    struct bench_child child;
    const struct bench_attachment *attachment; /* NULL: none */
    void *state;
    bool is_open;
};

/* A row and its helpers, of one thread and of several. */
struct place {
    struct bench_row *row;
    struct session alone, together;
    uint64_t spent_ns; /* in its turns */
};

static void end_session(struct session *s)
{
    if (!s->is_open)
        return;
    if (s->attachment)
        s->attachment->detach(s->state);
    bench_child_end(&s->child);
    s->is_open = false;
}

static int begin_session(struct session *s, const char *helper, struct bench_row *row, unsigned threads,
                         struct error *e)
{
    s->attachment = bench_find_attachment(row->sink);
    int bad = bench_child_start(&s->child, helper, row->mechanism, s->attachment ? "off" : row->sink, threads,
                                row->payload_bytes, e);
    if (!bad && s->attachment) {
        const struct bench_target target = {row->mechanism, s->child.pid, helper, s->child.hello.site_offset};
        bad = s->attachment->attach(s->attachment, &target, &s->state, e);
        if (bad)
            bench_child_end(&s->child);
    }
    if (bad)
        return bad;
    s->is_open = true;
    row->events_per_call = s->child.hello.events_per_call;
    row->knows_hits = s->attachment ? s->attachment->hits != NULL : s->child.hello.knows_hits;
    return 0;
}

/* ---- one turn ---- */

struct turn {
    struct session *session;
    struct bench_row *row;
    bool is_alone; /* one thread */
    struct bench_reply reply;
};

static uint64_t sum_of(const struct session *s, uint64_t (*of)(void *state))
{
    return of ? of(s->state) : 0;
}

/* The sinks of the kernel hold memory outside of the helper. */
static void note_memory(struct turn *t, const struct bench_attachment *a)
{
    const uint64_t bytes = t->session->attachment ? sum_of(t->session, a->memory) : t->reply.memory_bytes;
    t->row->memory_bytes = bytes > t->row->memory_bytes ? bytes : t->row->memory_bytes;
}

static int ask(struct turn *t, enum bench_mode mode, uint32_t shots, struct error *e)
{
    const struct bench_request q = {.mode = mode, .shots = shots, .target_ns = BATCH_NS};
    const struct bench_attachment none = {NULL}, *a = t->session->attachment ? t->session->attachment : &none;
    const uint64_t hits = sum_of(t->session, a->hits), lost = sum_of(t->session, a->lost),
                   bytes = sum_of(t->session, a->bytes);
    struct bench_row *row = t->row;
    const int bad = bench_child_ask(&t->session->child, &q, &t->reply, e);
    if (bad)
        return bad;
    row->expected += t->reply.expected;
    row->hits += t->reply.hits + sum_of(t->session, a->hits) - hits;
    row->lost += t->reply.lost + sum_of(t->session, a->lost) - lost;
    row->bytes += t->reply.bytes + sum_of(t->session, a->bytes) - bytes;
    row->dropped_shots += t->reply.n_dropped;
    if (mode == BENCH_BATCH && t->is_alone)
        note_memory(t, a);
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

static int take_all_shots(struct turn *t, struct error *e)
{
    struct bench_row *row = t->row;
    int bad = take_shots(t, BENCH_SINGLE, HOT_SHOTS, &row->hot, e);
    if (!bad)
        bad = take_shots(t, BENCH_ISOLATED, APART_SHOTS, &row->isolated, e);
    if (!bad)
        bad = take_shots(t, BENCH_COLD, COLD_SHOTS, &row->cold, e);
    return bad;
}

/* Returns 0, or -errno and a line if no row can be measured. A row that cannot be measured is marked as unavailable. */
static int take_turn(const struct bench_options *o, struct bench_row *row, struct session *s,
                     struct bench_batches *batches, struct error *e)
{
    struct turn t = {.session = s, .row = row, .is_alone = batches == &row->alone};
    int bad = s->is_open ? 0 : begin_session(s, o->helper, row, batches->threads, e);
    if (bad && bad != -ENOTSUP)
        return bad;
    if (!bad)
        bad = take_batches(&t, batches, e);
    if (!bad && batches == &row->alone)
        bad = take_all_shots(&t, e);
    if (bad)
        row->unavailable = mem_strdup(e->text);
    if (bad || !s->attachment || !s->attachment->is_slow)
        end_session(s);
    return 0;
}

static int take_row(const struct bench_options *o, struct place *p, struct error *e)
{
    struct bench_row *row = p->row;
    const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    int bad = row->unavailable ? 0 : take_turn(o, row, &p->alone, &row->alone, e);
    if (!bad && !row->unavailable && row->together.threads > 1)
        bad = take_turn(o, row, &p->together, &row->together, e);
    p->spent_ns += clock_ns(CLOCK_MONOTONIC) - began_ns;
    return bad;
}

/* ---- all turns ---- */

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
    vec_each (const struct bench_pair, p, &o->pairs) {
        struct bench_row *row = vec_push(&out->rows);
        bench_row_init(row, p->mechanism, p->sink, p->floor, o->threads);
        row->needs = p->needs;
        row->keeps = p->keeps;
        row->clock = p->clock;
        row->has_payload = p->has_payload;
        row->payload_bytes = p->payload_bytes;
    }
}

/*
 * One turn of each row; all but the first round end when the time is over. Rows whose turns are long, as those with a
 * daemon, miss rounds: each row gets about the same time, and the short ones more turns.
 */
static int take_round(const struct bench_options *o, struct place *places, size_t n, uint64_t began_ns,
                      bool is_first, struct error *e)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t share_ns = (clock_ns(CLOCK_MONOTONIC) - began_ns) / n;
        const int bad = is_first || places[i].spent_ns <= share_ns ? take_row(o, &places[i], e) : 0;
        if (bad)
            return bad;
        const double passed = (double)(clock_ns(CLOCK_MONOTONIC) - began_ns) / (double)o->time_ns;
        if (!is_first && passed >= 1)
            break;
        if (o->progress)
            o->progress(fmin(is_first ? fmin(passed, (double)i / (double)n) : passed, 1));
    }
    return 0;
}

int bench_run(const struct bench_options *o, struct bench_result *out, struct error *e)
{
    const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    int bad = 0;
    begin(o, out);
    const size_t n = out->floors.len + out->rows.len;
    struct place *places = mem_alloc(n * sizeof(*places));
    for (size_t i = 0; i < n; i++)
        places[i] = (struct place){.row = i < out->floors.len ? &out->floors.at[i]
                                                              : &out->rows.at[i - out->floors.len]};
    do {
        bad = take_round(o, places, n, began_ns, !out->turns, e);
        out->turns++;
    } while (!bad && clock_ns(CLOCK_MONOTONIC) - began_ns < o->time_ns);
    for (size_t i = 0; i < n; i++) {
        end_session(&places[i].alone);
        end_session(&places[i].together);
    }
    free(places);
    if (!bad && o->switches)
        bad = switch_cost_measure(o, &out->switchings, e);
    out->seconds = (double)(clock_ns(CLOCK_MONOTONIC) - began_ns) / 1e9;
    return bad;
}
