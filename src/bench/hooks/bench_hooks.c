/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper of `allium bench`: allium-bench-hooks MECHANISM SINK THREADS PAYLOAD. It is a program of its own, so that
 * the mechanisms change the code of no other, and it is started anew for each turn, so that a figure does not depend
 * on where its code and data happen to lie. See bench_turn.h.
 */
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

#include "bench/hooks/bench_events.h"
#include "bench/hooks/bench_memory.h"
#include "bench/hooks/bench_switch.h"
#include "bench/hooks/bench_threads.h"
#include "bench/hooks/bench_turn.h"

/* The beginning of this program, in its file and in memory: of the linker. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

#define ISOLATED_NS  10000u
#define COLD_BYTES   (8u << 20)
#define LINE_BYTES   64u
#define THREADS_MOST 1024ul
#define WARM_BYTES   32u /* of an event without a payload */
#define WARM_NS      2000000u

struct helper {
    const struct bench_mechanism_code *code;
    const struct bench_sink *sink; /* NULL: the mechanism is not there */
    void (*loop)(uint64_t);
    struct bench_threads *threads;
    unsigned n_threads;
    uint64_t calls; /* of a batch; 0: not known yet */
    uint64_t called;
    uint64_t warmed;       /* hits of the sink before that */
    uint64_t memory_bytes; /* of this process, without the sink */
    bool is_warm;
};

uint32_t bench_payload_bytes;
const struct bench_sink *bench_sink_in_use;

static const struct bench_mechanism_code *find_code(const char *name)
{
    for (const struct bench_mechanism_code *const *m = bench_mechanisms; *m; m++)
        if (!strcmp((*m)->name, name))
            return *m;
    return NULL;
}

static const struct bench_sink *find_sink(const char *name)
{
    for (const struct bench_sink *s = bench_sinks; s->name; s++)
        if (!strcmp(s->name, name))
            return s;
    return NULL;
}

/* Returns NULL, or why the row cannot be measured. */
static const char *begin(struct helper *h, const char *mechanism, const char *sink, unsigned n_threads)
{
    const char *why = NULL;
    const bool without = !strcmp(sink, "none");
    h->code = find_code(mechanism);
    h->sink = without ? NULL : find_sink(sink);
    if (!h->code || (!without && !h->sink))
        return "this helper is of another version: reinstall allium";
    bench_sink_in_use = h->sink;
    h->n_threads = n_threads;
    h->memory_bytes = bench_memory_of("self");
    if (h->sink && h->sink->begin)
        why = h->sink->begin(n_threads);
    if (why)
        return why;
    h->threads = bench_threads_new(n_threads);
    if (!h->threads)
        return strerror(errno);
    if (h->sink && !bench_patch_jump((void *)bench_hook, 0xe9, (const void *)h->sink->hit))
        why = BENCH_NO_PATCH;
    if (!why && h->code->begin)
        why = h->code->begin(h->sink && strcmp(sink, "off") != 0);
    h->loop = h->sink || !h->code->bare ? h->code->loop : h->code->bare;
    return why;
}

/* Where the hits of the mechanism are. NULL: there is nothing to do. */
static void (*leave_of(const struct helper *h))(void)
{
    if (!h->sink || !h->sink->leave)
        return NULL;
    return h->code->leave ? h->code->leave : h->sink->leave;
}

/* ---- batches ---- */

static struct bench_lap run(struct helper *h, void (*loop)(uint64_t), uint64_t calls)
{
    if (loop == h->code->loop)
        h->called += calls * h->n_threads;
    return bench_threads_run(h->threads, loop, calls, leave_of(h));
}

BENCH_LOOP(warm_sink, bench_hook(NULL, NULL))

/* As many calls as take the time, after as many as fill the caches. */
static void find_calls(struct helper *h, uint64_t target_ns)
{
    double ns = 0, all = 0;
    h->calls = 1;
    while (all < WARM_NS && h->calls < bench_calls_most) {
        ns = run(h, h->loop, h->calls).ns;
        all += ns;
        if (ns < (double)target_ns)
            h->calls *= 2;
    }
    ns /= (double)h->calls;
    const double calls = ns > 0 ? (double)target_ns / ns + 1 : (double)bench_calls_most;
    h->calls = calls < (double)bench_calls_most ? (uint64_t)calls : bench_calls_most;
}

static void time_batch(struct helper *h, uint64_t target_ns, struct bench_reply *r)
{
    if (!h->calls)
        find_calls(h, target_ns);
    const struct bench_lap bare = h->code->bare ? run(h, h->code->bare, h->calls) : (struct bench_lap){0},
                           lap = run(h, h->loop, h->calls);
    r->bare_ns = bare.ns / (double)h->calls;
    r->ns = lap.ns / (double)h->calls;
    r->calls = h->calls * h->n_threads;
    r->is_switched = bare.is_switched || lap.is_switched;
    r->is_apart = bare.is_apart || lap.is_apart;
}

/* ---- single calls, of the first thread ---- */

static char *cold_bytes;

/* What the mechanism has in the caches is displaced by other data. */
static void make_cold(void)
{
    if (!cold_bytes)
        cold_bytes = calloc(1, COLD_BYTES);
    for (size_t i = 0; cold_bytes && i < COLD_BYTES; i += LINE_BYTES)
        store_relaxed(&cold_bytes[i], (char)(cold_bytes[i] + 1));
}

/*
 * Returns whether the kernel has left the CPU to the thread since `before`, the result of bench_threads_switches().
 */
static bool is_undisturbed(long before)
{
    return bench_threads_switches() == before;
}

static uint64_t time_one(void (*loop)(uint64_t))
{
    bench_stack_end = __builtin_frame_address(0);
    bench_now();
    const uint64_t began = bench_now();
    loop(1);
    return bench_now() - began;
}

static bool time_apart(enum bench_mode mode, void (*loop)(uint64_t), uint32_t *ns)
{
    if (mode == BENCH_COLD)
        make_cold();
    const long before = bench_threads_switches();
    if (mode == BENCH_ISOLATED)
        for (const uint64_t until = bench_now() + ISOLATED_NS; bench_now() < until;)
            __builtin_ia32_pause();
    const uint64_t took = time_one(loop);
    *ns = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
    return is_undisturbed(before);
}

/* All of them without a pause, and therefore judged together. */
static void time_singles(struct helper *h, uint32_t shots, struct bench_reply *r)
{
    const long before = bench_threads_switches();
    for (uint32_t i = 0; i < shots; i++)
        r->bare_shots_ns[i] = (uint32_t)time_one(h->code->bare);
    for (uint32_t i = 0; i < shots; i++)
        r->shots_ns[i] = (uint32_t)time_one(h->loop);
    r->n_shots = is_undisturbed(before) ? shots : 0;
}

static void time_shots(struct helper *h, enum bench_mode mode, uint32_t shots, struct bench_reply *r)
{
    if (!h->code->bare)
        return;
    if (mode == BENCH_SINGLE)
        time_singles(h, shots, r);
    else
        for (uint32_t i = 0; i < shots; i++) {
            const bool bare = time_apart(mode, h->code->bare, &r->bare_shots_ns[r->n_shots]),
                       hooked = time_apart(mode, h->loop, &r->shots_ns[r->n_shots]);
            r->n_shots += bare && hooked;
        }
    r->n_dropped = shots - r->n_shots;
    if (h->loop == h->code->loop)
        h->called += shots;
    if (leave_of(h))
        leave_of(h)();
}

/* ---- switching ---- */

static uint32_t since(uint64_t began_ns)
{
    const uint64_t took = bench_now() - began_ns;
    return took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
}

static void time_switches(struct helper *h, uint32_t sites, struct bench_reply *r)
{
    bool (*set)(uint32_t, bool) = h->sink && h->sink->set ? h->sink->set : h->code->set;
    if (!set || sites > BENCH_SITES_MOST)
        return;
    for (uint32_t i = 0; i < BENCH_SWITCHES; i++) {
        uint64_t began = bench_now();
        if (!set(sites, true))
            return;
        r->shots_ns[i] = since(began);
        began = bench_now();
        if (!set(sites, false))
            return;
        r->bare_shots_ns[i] = since(began);
        r->n_shots = i + 1;
    }
}

/* ---- the conversation ---- */

static uint64_t sum_of(uint64_t (*of)(void))
{
    return of ? of() : 0;
}

/* The most is in use when the sink has been warmed, and before other data displaces it from the caches. */
static uint64_t memory_taken(const struct helper *h, const struct bench_sink *s)
{
    const uint64_t now = bench_memory_of("self") + sum_of(s->memory);
    return h->memory_bytes && now > h->memory_bytes ? now - h->memory_bytes : 0;
}

/* Returns the place of an address in this program's file. */
static uint64_t file_offset(const void *address)
{
    const uintptr_t at = (uintptr_t)address - (uintptr_t)&__ehdr_start;
    const ElfW(Phdr) *h = (const ElfW(Phdr) *)((const char *)&__ehdr_start + __ehdr_start.e_phoff);
    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++)
        if (h[i].p_type == PT_LOAD && at >= h[i].p_vaddr && at < h[i].p_vaddr + h[i].p_filesz)
            return at - h[i].p_vaddr + h[i].p_offset;
    return 0;
}

static bool transfer_all(int fd, void *bytes, size_t len, bool is_write)
{
    char *at = bytes;
    while (len) {
        const ssize_t n = is_write ? write(fd, at, len) : read(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static void settle(const struct helper *h, const struct bench_sink *s)
{
    if (s->settle)
        s->settle(h->warmed + h->called * h->code->events_per_call);
}

static void warm(struct helper *h, const struct bench_sink *s)
{
    const uint64_t hits = s->warm_hits / (1 + bench_payload_bytes / WARM_BYTES);
    bench_threads_run(h->threads, warm_sink, hits, s->leave);
    h->warmed = hits * h->n_threads;
    settle(h, s);
}

static void answer(struct helper *h, const struct bench_request *q, struct bench_reply *r)
{
    const struct bench_sink none = {NULL}, *s = h->sink ? h->sink : &none;
    if (s->warm_hits && !h->is_warm)
        warm(h, s);
    h->is_warm = true;
    const uint64_t hits = sum_of(s->hits), lost = sum_of(s->lost), bytes = sum_of(s->bytes),
                   called = h->called;
    if (q->mode == BENCH_SWITCH)
        time_switches(h, q->shots, r);
    else if (q->mode == BENCH_BATCH)
        time_batch(h, q->target_ns, r);
    else
        time_shots(h, (enum bench_mode)q->mode, q->shots < BENCH_SHOTS ? q->shots : BENCH_SHOTS, r);
    settle(h, s);
    r->expected = h->sink ? (h->called - called) * h->code->events_per_call : 0;
    r->hits = sum_of(s->hits) - hits;
    r->lost = sum_of(s->lost) - lost;
    r->bytes = sum_of(s->bytes) - bytes;
    if (q->mode == BENCH_BATCH)
        r->memory_bytes = memory_taken(h, s);
}

int main(int argc, char **argv)
{
    static struct bench_reply reply;
    struct bench_hello hello = {.version = BENCH_VERSION};
    struct bench_request request;
    struct helper h = {.code = NULL};
    const unsigned long n = argc == 5 ? strtoul(argv[3], NULL, 10) : 0,
                        payload = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
    if (!n || n > THREADS_MOST || payload > BENCH_PAYLOAD_MOST) {
        fprintf(stderr, "usage: %s MECHANISM SINK THREADS PAYLOAD; `allium bench` starts this program\n",
                BENCH_HELPER);
        return 2;
    }
    bench_payload_bytes = (uint32_t)payload;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *why = begin(&h, argv[1], argv[2], (unsigned)n);
    if (why) {
        snprintf(hello.text, sizeof(hello.text), "%s", why);
    } else {
        hello.is_ready = 1;
        hello.events_per_call = h.code->events_per_call;
        hello.knows_hits = h.sink && h.sink->hits;
        hello.site_offset = h.code->site ? file_offset(h.code->site) : 0;
        hello.sites_offset = h.code->sites ? file_offset(h.code->sites) : 0;
    }
    if (!transfer_all(STDOUT_FILENO, &hello, sizeof(hello), true) || why)
        return 1;
    while (transfer_all(STDIN_FILENO, &request, sizeof(request), false)) {
        memset(&reply, 0, sizeof(reply));
        answer(&h, &request, &reply);
        if (!transfer_all(STDOUT_FILENO, &reply, sizeof(reply), true))
            return 1;
    }
    return 0;
}
