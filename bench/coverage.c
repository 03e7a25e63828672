/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How often the 95 % intervals of model/estimate hold the truth, how wide they are, and whether the estimates
 * are biased: simulated runs of the sampler over known populations, from gaps to cells to intervals.
 *
 *     coverage [--runs N] [--seed S] [--period BYTES] [--normal]
 *
 * One row for each of: sizes, expected samples, allocated or live, total or one fixed stack, bytes or counts.
 * The population of a row is fixed; its runs differ in the sampler's gaps only, so coverage is not averaged
 * over lucky and unlucky populations. "Expected samples" are those of the figure in the row: where it is the
 * fixed stack, nine other stacks like it are simulated too; where it is live, as many objects again were freed.
 *
 * A row passes when coverage >= 93 %; <= 97.5 % if 100 or more samples smaller than the period are expected;
 * mean width <= 1.3 times 2 * 1.96 * the true standard deviation if 30 or more samples are expected; and the
 * mean estimate is within 3 (true) standard errors of the truth. `known` marks a count of small objects behind
 * large ones that are likely to leave no sample: model/profile/estimate.h says why only its bias is judged. --normal
 * judges value +- 1.96 standard errors, which must fail.
 * Exit code: 0 all passed, 1 some failed, 2 usage.
 *
 * At 1,000 runs the coverage measured has a standard error of 0.7 points, and of 200 means one or two stray
 * beyond 3 standard errors by chance. So a row that fails is repeated with other gaps and ten times the runs,
 * and that decides: chance passes, a bias or a coverage that is wrong does not. (The default seed needs none.)
 */

#include "model/profile/estimate.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACKS      10
#define CLASSES     32
#define MAX_BATCHES (1 << 18)
#define SMALLEST    8.0
#define LARGEST     (8.0 * 1024 * 1024)
#define MIN_COVER   0.93
#define MAX_COVER   0.975
#define MAX_WIDTH   1.3
#define MAX_Z       3.0
#define AGAIN       10 /* times as many runs for a row that failed */

enum sizes { SAME, LOG_UNIFORM, LARGE_AMONG_SMALL };

static const struct shape {
    const char *name;
    enum sizes sizes;
    double size;
} shapes[] = {
    {"64 B", SAME, 64},
    {"1 KiB", SAME, 1024},
    {"64 KiB", SAME, 64 * 1024},
    {"log-uniform", LOG_UNIFORM, 0},
    {"8 MiB in 8 B", LARGE_AMONG_SMALL, 0},
};
static const double expected_samples[] = {3, 10, 30, 100, 1000};

/* Objects of one size, one after the other. */
struct batch {
    double size;
    uint64_t number;
    int stack;
    bool live;
};

struct population {
    struct batch *batch;
    size_t len;
    double period;
    bool live_only, one_stack; /* what is estimated */
    bool normal;               /* judge the textbook interval instead */
};

/* What is true of the figure estimated: [0] of bytes, [1] of counts. */
struct truth {
    double value[2], variance[2];
    double small_samples;    /* expected, of objects smaller than the period */
    double smallest_samples; /* expected, of the smallest size class */
    bool hidden;             /* the smallest objects may leave no sample while far larger ones do */
};

/* One population and what is asked of it: two lines of the table. */
struct row {
    uint64_t number;
    const struct shape *shape;
    double expected;
    bool live_only, one_stack;
};

struct tally {
    double sum, width;
    uint64_t covered;
};

struct random {
    uint64_t state;
};

/* xorshift64*, Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016). */
static uint64_t random_bits(struct random *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * 0x2545f4914f6cdd1dull;
}

/* The finalizer of splitmix64: neighbouring numbers become unrelated ones. */
static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static struct random random_seeded(uint64_t seed, uint64_t row, uint64_t run)
{
    uint64_t state = mix(mix(mix(seed) + row) + run);

    return (struct random){state ? state : 1};
}

static double random_gap(struct random *r, double period)
{
    return -period * log(((double)(random_bits(r) >> 11) + 0.5) * 0x1p-53);
}

static double chance(double size, double period)
{
    return -expm1(-size / period);
}

static void add_batch(struct population *p, double size, uint64_t number, int stack, bool live)
{
    if (!number)
        return;
    if (p->len == MAX_BATCHES)
        abort();
    p->batch[p->len++] = (struct batch){size, number, stack, live};
}

/* Objects of the figure estimated, and the others that are simulated with them. */
static void add_objects(struct population *p, double size, uint64_t number)
{
    static const bool lives[] = {true, false};

    for (int stack = 0; stack < STACKS; stack++) {
        uint64_t share = number;

        if (!p->one_stack)
            share = number / STACKS + ((uint64_t)stack < number % STACKS);
        for (int i = 0; i < 2; i++)
            if (p->live_only)
                add_batch(p, size, share, stack, lives[i]);
            else
                add_batch(p, size, share / 2 + (share % 2 && lives[i]), stack, lives[i]);
    }
}

/* Sizes at equal steps of their logarithm: the i-th of `number`. */
static double log_uniform(uint64_t i, uint64_t number)
{
    return round(SMALLEST * pow(LARGEST / SMALLEST, ((double)i + 0.5) / (double)number));
}

static void build_log_uniform(struct population *p, double expected)
{
    const uint64_t steps = 100000;
    double mean_chance = 0;
    uint64_t number;

    for (uint64_t i = 0; i < steps; i++)
        mean_chance += chance(log_uniform(i, steps), p->period) / (double)steps;
    number = (uint64_t)round(expected / mean_chance);
    for (uint64_t i = 0; i < number; i++) {
        double size = log_uniform(i, number);

        for (int stack = 0; stack < STACKS; stack++)
            for (int freed = 0; freed < 2; freed++)
                if ((p->one_stack || (uint64_t)stack == i % STACKS) &&
                    (p->live_only || freed == (int)(i % 2)))
                    add_batch(p, size, 1, stack, !freed);
    }
}

static void build(struct population *p, const struct shape *shape, double expected)
{
    double large = round(expected / (1 + LARGEST / p->period)); /* as near to half the bytes as can be */

    p->len = 0;
    switch (shape->sizes) {
    case SAME:
        add_objects(p, shape->size, (uint64_t)round(expected / chance(shape->size, p->period)));
        break;
    case LOG_UNIFORM:
        build_log_uniform(p, expected);
        break;
    case LARGE_AMONG_SMALL:
        large = fmax(large, 1);
        add_objects(p, LARGEST, (uint64_t)large);
        add_objects(p, SMALLEST, (uint64_t)round((expected - large) / chance(SMALLEST, p->period)));
        break;
    }
}

static bool counts_here(const struct population *p, int stack, bool live)
{
    return (!p->one_stack || stack == 0) && (!p->live_only || live);
}

static struct truth know_truth(const struct population *p, enum sizes sizes)
{
    struct truth t = {0};
    double smallest = INFINITY;

    for (size_t i = 0; i < p->len; i++) {
        const struct batch *b = &p->batch[i];
        double number = (double)b->number, chance_of = chance(b->size, p->period);

        if (!counts_here(p, b->stack, b->live))
            continue;
        t.value[0] += number * b->size;
        t.value[1] += number;
        t.variance[0] += number * b->size * b->size * (1 - chance_of) / chance_of;
        t.variance[1] += number * (1 - chance_of) / chance_of;
        if (b->size < p->period)
            t.small_samples += number * chance_of;
        smallest = fmin(smallest, b->size);
    }
    for (size_t i = 0; i < p->len; i++)
        if (counts_here(p, p->batch[i].stack, p->batch[i].live) && p->batch[i].size < 2 * smallest)
            t.smallest_samples += (double)p->batch[i].number * chance(p->batch[i].size, p->period);
    t.hidden = sizes == LARGE_AMONG_SMALL && t.smallest_samples < 4;
    return t;
}

/* One run of the program under the sampler: bytes pass, and the object in which a gap ends is sampled. */
static void sample(const struct population *p, struct random *r, struct estimate_cell cells[STACKS][CLASSES])
{
    double gap = random_gap(r, p->period);

    for (size_t i = 0; i < p->len; i++) {
        const struct batch *b = &p->batch[i];
        double left = (double)b->number, weight = 1 / chance(b->size, p->period);
        struct estimate_cell *cell = &cells[b->stack][ilogb(b->size)];

        while (gap < left * b->size) {
            left -= floor(gap / b->size) + 1;
            gap = random_gap(r, p->period);
            if (!counts_here(p, b->stack, b->live))
                continue;
            cell->samples++;
            cell->seen += b->size;
            cell->bytes += b->size * weight;
            cell->count += weight;
        }
        gap -= left * b->size;
    }
}

/* The textbook interval, to show that these checks can fail (--normal). */
static struct interval normal_interval(const struct estimate *e)
{
    double reach = 1.96 * sqrt(e->variance);

    return (struct interval){e->value - reach, e->value + reach};
}

static void run_once(const struct population *p, struct random *r, const struct truth *t,
                     struct tally tally[2])
{
    static struct estimate_cell cells[STACKS][CLASSES];
    struct estimate e[2] = {0};

    memset(cells, 0, sizeof(cells));
    for (int stack = 0; stack < STACKS; stack++)
        for (int octave = 0; octave < CLASSES; octave++)
            cells[stack][octave].period = p->period;
    sample(p, r, cells);
    for (int stack = 0; stack < STACKS; stack++)
        for (int octave = 0; octave < CLASSES && counts_here(p, stack, true); octave++) {
            estimate_add_cell_bytes(&e[0], &cells[stack][octave]);
            estimate_add_cell_count(&e[1], &cells[stack][octave]);
        }
    for (int i = 0; i < 2; i++) {
        struct interval within = p->normal ? normal_interval(&e[i]) : estimate_interval(&e[i]);

        tally[i].sum += e[i].value;
        tally[i].width += within.high - within.low;
        tally[i].covered += within.low <= t->value[i] && t->value[i] <= within.high;
    }
}

/* Prints the row of bytes (0) or of counts (1). True: it passed. */
static bool judge(const struct row *row, const struct truth *t, const struct tally *tally, int what,
                  uint64_t runs)
{
    double mean = tally->sum / (double)runs, deviation = sqrt(t->variance[what]);
    double z = (mean - t->value[what]) / deviation * sqrt((double)runs);
    double covered = (double)tally->covered / (double)runs;
    double width = tally->width / (double)runs / (2 * 1.96 * deviation);
    bool known = what == 1 && t->hidden;
    bool biased = fabs(z) > MAX_Z;
    bool missed = covered < MIN_COVER && !known;
    bool timid = covered > MAX_COVER && t->small_samples >= 99.5 && !known;
    bool wide = width > MAX_WIDTH && row->expected >= 30 && !known;
    bool passed = !biased && !missed && !timid && !wide;

    printf("%-12s %7.0f %-9s %-5s %-6s %11.0f %11.0f %6.2f %6.1f %6.2f  %s%s%s%s%s%s\n", row->shape->name,
           row->expected, row->live_only ? "live" : "allocated", row->one_stack ? "stack" : "total",
           what ? "count" : "bytes", t->value[what], mean, z, 100 * covered, width, passed ? "PASS" : "FAIL",
           biased ? " biased" : "", missed ? " misses" : "", timid ? " overcovers" : "", wide ? " wide" : "",
           known ? " (known)" : "");
    return passed;
}

/* How many of the two figures failed. */
static int simulate(struct population *p, const struct row *row, uint64_t seed, uint64_t runs)
{
    struct tally tally[2] = {{0}};
    struct truth truth;
    int failed = 0;

    p->live_only = row->live_only;
    p->one_stack = row->one_stack;
    build(p, row->shape, row->expected);
    truth = know_truth(p, row->shape->sizes);
    for (uint64_t i = 0; i < runs; i++) {
        struct random r = random_seeded(seed, row->number, i);

        run_once(p, &r, &truth, tally);
    }
    for (int what = 0; what < 2; what++)
        failed += !judge(row, &truth, &tally[what], what, runs);
    return failed;
}

static int simulate_all(struct population *p, uint64_t seed, uint64_t runs)
{
    const size_t n_shapes = sizeof(shapes) / sizeof(shapes[0]);
    const size_t n_expected = sizeof(expected_samples) / sizeof(expected_samples[0]);
    int failed = 0;

    printf("%-12s %7s %-9s %-5s %-6s %11s %11s %6s %6s %6s\n", "sizes", "samples", "of", "in", "figure",
           "truth", "mean", "z", "cover%", "width");
    for (uint64_t i = 0; i < n_shapes * n_expected * 4; i++) {
        struct row row = {
            .number = i,
            .shape = &shapes[i / 4 / n_expected],
            .expected = expected_samples[i / 4 % n_expected],
            .live_only = i & 1,
            .one_stack = i & 2,
        };

        if (!simulate(p, &row, seed, runs))
            continue;
        printf("%-12s again, %d times as many other runs:\n", "", AGAIN);
        failed += simulate(p, &row, mix(seed), runs * AGAIN);
    }
    return failed;
}

static int usage(void)
{
    fprintf(stderr, "usage: coverage [--runs N] [--seed S] [--period BYTES] [--normal]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct population p = {.period = 512 * 1024};
    uint64_t runs = 1000, seed = 4;
    int failed;

    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        uint64_t value;

        if (!strcmp(option, "--normal")) {
            p.normal = true;
            continue;
        }
        if (++i == argc)
            return usage();
        value = strtoull(argv[i], NULL, 10);
        if (!strcmp(option, "--runs") && value)
            runs = value;
        else if (!strcmp(option, "--seed"))
            seed = value;
        else if (!strcmp(option, "--period") && value > 1)
            p.period = (double)value;
        else
            return usage();
    }
    p.batch = calloc(MAX_BATCHES, sizeof(*p.batch));
    if (!p.batch)
        abort();
    failed = simulate_all(&p, seed, runs);
    printf("%d rows failed\n", failed);
    free(p.batch);
    return failed ? 1 : 0;
}
