/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_DIFF
#define TEST_DIFF

/*
 * What the tests of diffs share, included by each: two moments of a heap each object of which is sampled by the toss of
 * a coin. The coins come from fixed seeds; the truth is what they were tossed for.
 */

#include "test_view_truth.h"

#include "model/profile/profile_diff.h"

/* ---- a heap of which each object is drawn ---- */

/** Objects of one stack: what became of them between the two moments. */
struct fate {
    uint32_t stack; /* of enum shop_stack */
    uint64_t size;
    uint32_t stayed, freed, added, passed; /* objects; passed: allocated and freed between */
};

enum knowledge {
    COMPLETE,  /* both moments know their samples */
    PAST,      /* the first is of the past: the sums alone */
    BOTH_PAST, /* the second, too: of it those samples are known that were in the first, too, and lived on */
    BLIND      /* and none did */
};

/* xorshift64*; uniform in (0, 1). */
static inline double draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return ((double)((*state * 0x2545f4914f6cdd1dull) >> 11) + 0.5) * 0x1p-53;
}

static inline uint32_t draw_samples(uint64_t *state, uint32_t objects, uint64_t size, uint64_t period)
{
    uint32_t k = 0;
    double p = 1 / rollup_weight(size, period);
    for (uint32_t i = 0; i < objects; i++)
        k += draw(state) < p;
    return k;
}

static inline struct profile_sums sums(const struct fate *f, uint64_t period, uint32_t k)
{
    return sums_of(&(struct objects){.size = f->size, .period = period}, k);
}

static inline void add_live(struct profile *p, uint32_t cell, uint64_t size, uint64_t serial, uint32_t k,
                            uint64_t born_ns)
{
    for (uint32_t i = 0; i < k; i++)
        *vec_push(&p->samples) = (struct profile_sample){
            .cell = cell, .serial = serial + i, .size_bytes = size, .born_ns = born_ns};
}

static inline struct profile *moment(bool past, uint64_t taken_ns)
{
    struct profile *p = profile_new();
    uint32_t image = add_image(p, "shop", 4242, "/opt/shop/bin/shop");
    add_shop_modules(p, SHOP_AT);
    add_shop_stacks(p, 0);
    p->images.at[image].past = past;
    p->images.at[image].taken_ns = p->taken_ns = taken_ns;
    return p;
}

/** Two moments of one image, a minute apart. */
static inline void simulate(struct profile *at[2], uint64_t *state, const struct fate *fates, size_t n,
                            uint64_t period, enum knowledge known)
{
    uint64_t middle = BEGAN + 60 * SECOND, serial = 1;
    at[0] = moment(known != COMPLETE, middle);
    at[1] = moment(known >= BOTH_PAST, middle + 60 * SECOND);
    for (const struct fate *f = fates; f < fates + n; f++) {
        uint32_t stayed = draw_samples(state, f->stayed, f->size, period);
        uint32_t freed = draw_samples(state, f->freed, f->size, period);
        uint32_t added = draw_samples(state, f->added, f->size, period);
        uint32_t passed = draw_samples(state, f->passed, f->size, period);
        struct profile_cell cell = {.stack = f->stack,
                                    .size_class = (uint8_t)(63 - __builtin_clzll(f->size)),
                                    .period_bytes = period,
                                    .allocated = sums(f, period, stayed + freed)};
        uint32_t index = (uint32_t)at[0]->cells.len;
        *vec_push(&at[0]->cells) = cell;
        cell.allocated = sums(f, period, stayed + freed + added + passed);
        cell.freed = sums(f, period, freed + passed);
        *vec_push(&at[1]->cells) = cell;
        if (known == COMPLETE) {
            add_live(at[0], index, f->size, serial, stayed, BEGAN);
            add_live(at[0], index, f->size, serial + stayed, freed, BEGAN);
        }
        if (known != BLIND)
            add_live(at[1], index, f->size, serial, stayed, BEGAN);
        if (known < BOTH_PAST)
            add_live(at[1], index, f->size, serial + stayed + freed, added, middle + SECOND);
        serial += stayed + freed + added;
    }
    assert_true(profile_valid(at[0]) && profile_valid(at[1]));
}

/** As another run of the program. */
static inline void estrange(struct profile *p)
{
    p->images.at[0].id += 77;
    p->images.at[0].pid += 77;
}

static inline struct diff *compare(struct profile *const at[2], enum rollup_group group,
                                   enum rollup_sort sort)
{
    struct diff_options o = {.group = group, .sort = sort, .inclusive = group != ROLLUP_BY_STACK};
    return diff_new(at[0], at[1], &o);
}

static inline void release(struct profile *at[2])
{
    profile_free(at[0]);
    profile_free(at[1]);
}

/** What is replaced by as much, in each stack. */
static const struct fate churn[] = {{PARSE, 4096, 30000, 9000, 9000, 20000},
                                    {CACHE, 200, 100000, 50000, 50000, 0},
                                    {JIT, 512 * KIB, 20, 30, 30, 9}};

#endif
