/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one walk costs: 1,000 different stacks of some 40 frames, warm, in random order, of code without frame pointers.
 * Before anything is timed, every way must find the same return addresses on every stack, and no two stacks be equal.
 *
 *   allium      our walk, as the agent does it
 *   libgcc      _Unwind_Backtrace (peer)
 *   libunwind   unw_backtrace with its cache (peer)
 *   floor       the chain of frame pointers, on a twin of the code that has them
 *
 * Each stack is built by calls and walked from its innermost function; the clock runs around the walk alone, and what
 * reading it costs is measured with an empty walk and taken off.
 *
 *     stacks                the benchmark
 *     stacks WAY COUNT      walks one stack COUNT times, for those who count instructions
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "chain.h"
#include "stats.h"
#include "unwind/module.h"
#include "unwind/walk.h"

#define STACKS     1000
#define LINKS_LOW  30 /* in the chain; beyond them main and what calls it */
#define LINKS_HIGH 42
#define DEPTH_MAX  64
#define PCS_MAX    4096
#define ROUNDS_MIN 64
#define ROUNDS_MAX 8192
#define LONGEST_NS 600e9
#define BOUND_NS   250.0
#define BOUND_PART (1 / 15.0)

struct trace {
    uintptr_t pc[DEPTH_MAX];
    unsigned depth;
};

struct way {
    const char *name;
    void (*chain)(const uint16_t *, unsigned, void (*)(void));
    void (*walk)(struct trace *);
    double ticks[ROUNDS_MAX]; /* of one walk, a round each */
};

static struct stack {
    uint16_t path[LINKS_HIGH];
    unsigned links;
    struct trace want;
} stacks[STACKS];

static struct word_cache cache;
static struct stack_bounds bounds;
static uintptr_t pcs[PCS_MAX], base;
static uint32_t never_sealed, pcs_used;
static int (*libunwind_backtrace)(void **, int);

static uint32_t name(void *arg, uint32_t module, uintptr_t pc, bool exact)
{
    (void)arg, (void)module, (void)exact;
    if (pcs_used == PCS_MAX)
        return WALK_NO_ID;
    pcs[pcs_used] = pc;
    return pcs_used++;
}

/* Numbers of frames, as the agent takes them; verify() makes them addresses. */
static uint32_t ids[DEPTH_MAX];

static __attribute__((noinline)) void walk_allium(struct trace *t)
{
    struct walker w = {.cache = &cache, .name = name, .sealed = &never_sealed};
    struct walk_start start = {.pc = (uintptr_t)__builtin_return_address(0),
                               .sp = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *),
                               .fp = *(const uintptr_t *)__builtin_frame_address(0)};
    enum walk_end end;
    t->depth = walk_stack(&w, &bounds, &start, ids, DEPTH_MAX, &end);
}

static _Unwind_Reason_Code take(struct _Unwind_Context *context, void *arg)
{
    struct trace *t = arg;
    uintptr_t pc = _Unwind_GetIP(context);
    if (pc && t->depth < DEPTH_MAX)
        t->pc[t->depth++] = pc;
    return _URC_NO_REASON;
}

static __attribute__((noinline)) void walk_libgcc(struct trace *t)
{
    t->depth = 0;
    _Unwind_Backtrace(take, t);
    __asm__ volatile("" ::: "memory"); /* a frame of its own: no tail jump */
}

static __attribute__((noinline)) void walk_libunwind(struct trace *t)
{
    t->depth = (unsigned)libunwind_backtrace((void **)t->pc, DEPTH_MAX);
}

static __attribute__((noinline)) void walk_frame_pointers(struct trace *t)
{
    unsigned n = 0;
    for (const uintptr_t *fp = __builtin_frame_address(0); n < DEPTH_MAX; fp = (const uintptr_t *)*fp) {
        t->pc[n++] = fp[1];
        if (*fp <= (uintptr_t)fp || *fp >= base)
            break;
    }
    t->depth = n;
}

static __attribute__((noinline)) void walk_nothing(struct trace *t)
{
    t->depth = DEPTH_MAX;
}

enum { ALLIUM, LIBGCC, LIBUNWIND, FLOOR, NOTHING, WAYS };
static struct way ways[WAYS] = {
    [ALLIUM] = {"allium", chain_plain, walk_allium, {0}},
    [LIBGCC] = {"libgcc", chain_plain, walk_libgcc, {0}},
    [LIBUNWIND] = {"libunwind", chain_plain, walk_libunwind, {0}},
    [FLOOR] = {"floor", chain_framed, walk_frame_pointers, {0}},
    [NOTHING] = {"nothing", chain_plain, walk_nothing, {0}},
};

static const struct way *now;
static struct trace found;
static uint64_t walking_ticks, frames;
static unsigned repeats = 1;

static inline uint64_t ticks(void)
{
    __builtin_ia32_lfence();
    uint64_t t = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return t;
}

/* The innermost function of each stack. It has a frame pointer on either twin. */
static __attribute__((noinline)) void leaf(void)
{
    __asm__ volatile("" ::"r"(__builtin_frame_address(0)));
    uint64_t began = ticks();
    for (unsigned i = 0; i < repeats; i++)
        now->walk(&found);
    walking_ticks += ticks() - began;
    frames += found.depth;
}

static __attribute__((noinline)) void run(const struct way *way, const struct stack *s)
{
    now = way;
    base = (uintptr_t)__builtin_frame_address(0);
    way->chain(s->path, s->links, leaf);
    __asm__ volatile("" ::: "memory");
}

static void fail(const char *what, const char *who, long stack)
{
    fprintf(stderr, "stacks: %s: %s, stack %ld\n", who, what, stack);
    exit(1);
}

static int compare_traces(const void *a, const void *b)
{
    const struct trace *x = &((const struct stack *)a)->want, *y = &((const struct stack *)b)->want;
    return x->depth != y->depth ? (x->depth > y->depth) - (x->depth < y->depth)
                                : memcmp(x->pc, y->pc, x->depth * sizeof(*x->pc));
}

/* What a way found must be what libgcc found, from leaf() on; the frames inside a walk are its own business. */
static void compare(const struct way *way, const struct stack *s, const struct trace *want)
{
    unsigned at = 0;
    if (way == &ways[ALLIUM])
        for (unsigned i = 0; i < found.depth; i++)
            found.pc[i] = pcs[ids[i]];
    while (at < found.depth && found.pc[at] != want->pc[0])
        at++;
    unsigned depth = found.depth - at, least = way == &ways[FLOOR] ? s->links + 2 : want->depth;
    if (depth < least || depth > want->depth || memcmp(found.pc + at, want->pc, depth * sizeof(*want->pc)))
        fail("not the frames that libgcc finds", way->name, s - stacks);
}

/* All ways over one stack, from one place, each after libgcc on the same code. */
static void verify(struct stack *s)
{
    static const struct way framed = {.chain = chain_framed, .walk = walk_libgcc};
    const struct way *const turns[] = {&framed, &ways[FLOOR], &ways[LIBGCC], &ways[ALLIUM], &ways[LIBUNWIND]};
    for (unsigned i = 0; i < sizeof(turns) / sizeof(*turns); i++) {
        run(turns[i], s);
        if (turns[i]->walk != walk_libgcc) {
            compare(turns[i], s, &s->want);
            continue;
        }
        s->want.depth = found.depth - 1; /* without walk_libgcc itself */
        memcpy(s->want.pc, found.pc + 1, s->want.depth * sizeof(*found.pc));
    }
}

static unsigned random_below(unsigned n)
{
    static uint64_t seed = 1;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((seed >> 33) % n);
}

static void make_stacks(void)
{
    for (struct stack *s = stacks; s < stacks + STACKS; s++) {
        s->links = LINKS_LOW + random_below(LINKS_HIGH - LINKS_LOW + 1);
        for (unsigned i = 0; i < s->links; i++)
            s->path[i] = (uint16_t)random_below(1 << 10);
        verify(s);
    }
    static struct stack sorted[STACKS];
    memcpy(sorted, stacks, sizeof(sorted));
    qsort(sorted, STACKS, sizeof(*sorted), compare_traces);
    for (unsigned i = 1; i < STACKS; i++)
        if (!compare_traces(&sorted[i - 1], &sorted[i]))
            fail("twice the same", "stacks", i);
}

/* One round: every way over all stacks, in one random order. */
static void measure_round(unsigned round)
{
    static unsigned order[STACKS];
    double spent[WAYS];
    for (unsigned i = 0; i < STACKS; i++) {
        unsigned j = random_below(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int n = 0; n < WAYS; n++) {
        unsigned w = (n + round) % WAYS;
        walking_ticks = frames = 0;
        for (unsigned i = 0; i < STACKS; i++)
            run(&ways[w], &stacks[order[i]]);
        spent[w] = (double)walking_ticks / STACKS;
        if (frames / STACKS < LINKS_LOW)
            fail("lost frames", ways[w].name, round);
    }
    for (int w = 0; w < WAYS; w++)
        ways[w].ticks[round] = w == NOTHING ? spent[w] : spent[w] - spent[NOTHING];
}

/* Interval over margin. */
static double width(const struct stats_ratio *r, double bound)
{
    return (r->high - r->low) / (r->ratio > bound ? r->ratio - bound : bound - r->ratio);
}

static void print_ways(unsigned rounds, double ns_per_tick)
{
    double mean = 0;
    for (unsigned i = 0; i < STACKS; i++)
        mean += (double)stacks[i].want.depth / STACKS;
    printf("%d stacks of %.1f frames on average, %u return addresses, %u rounds; reading the clock took %.1f "
           "ns\n",
           STACKS, mean, pcs_used, rounds, stats_median(ways[NOTHING].ticks, rounds) * ns_per_tick);
    for (int w = 0; w < NOTHING; w++)
        printf("  %-10s %8.1f ns a walk\n", ways[w].name, stats_median(ways[w].ticks, rounds) * ns_per_tick);
}

/* Rounds until either interval is a third of its margin, or time is up. */
static bool measure(void)
{
    static double bound[ROUNDS_MAX];
    double began_ns = stats_now_ns(), spent_ns;
    uint64_t began = ticks();
    struct stats_ratio whole, part;
    unsigned rounds = 0;
    do {
        for (unsigned goal = rounds ? rounds * 2 : ROUNDS_MIN; rounds < goal; rounds++)
            measure_round(rounds);
        spent_ns = stats_now_ns() - began_ns;
        for (unsigned i = 0; i < rounds; i++)
            bound[i] = BOUND_NS * (double)(ticks() - began) / spent_ns;
        whole = stats_ratio(ways[ALLIUM].ticks, bound, rounds);
        part = stats_ratio(ways[ALLIUM].ticks, ways[LIBGCC].ticks, rounds);
    } while (rounds < ROUNDS_MAX && spent_ns < LONGEST_NS / 2 && width(&whole, 1) > 1 / 3.0 &&
             width(&part, BOUND_PART) > 1 / 3.0);
    bool reached = whole.ratio <= 1 || part.ratio <= BOUND_PART;
    print_ways(rounds, spent_ns / (double)(ticks() - began));
    printf("  allium: %.0f ns (%.0f-%.0f), at most %.0f; or 1/%.1f of libgcc (1/%.1f-1/%.1f), at most "
           "1/%.0f: %s\n",
           whole.ratio * BOUND_NS, whole.low * BOUND_NS, whole.high * BOUND_NS, BOUND_NS, 1 / part.ratio,
           1 / part.high, 1 / part.low, 1 / BOUND_PART, reached ? "reached" : "MISSED");
    return reached;
}

int main(int argc, char **argv)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "unw_backtrace") : NULL;
    memcpy(&libunwind_backtrace, &symbol, sizeof(symbol));
    if (!symbol)
        fail("not installed", "libunwind.so.8", 0);
    module_init();
    make_stacks();
    if (argc < 3)
        return !measure();
    repeats = (unsigned)atoi(argv[2]);
    for (int w = 0; w < WAYS; w++)
        if (!strcmp(ways[w].name, argv[1]))
            run(&ways[w], &stacks[0]);
    return 0;
}
