/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the recording of a week: a server with 10,000 stacks that held 20,000 samples at last, and 195 of its children,
 * with 512 points in time each, 100,352 in all, of which 256 and 32 each keep who held what.
 *
 *     week FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/recording.h"

#define SECOND        1000000000ull
#define WEEK_NS       (7 * 86400 * SECOND)
#define BEGAN_NS      (1795269731 * SECOND)
#define PERIOD        (512u << 10)
#define FUNCTIONS     3000
#define STACKS        10000
#define CHILDREN      195
#define STACKS_CHILD  200
#define SAMPLES       20000
#define FREES         4096
#define POINTS        512
#define MOMENTS       256
#define MOMENTS_CHILD 32
#define CHANGED       20 /* one cell in so many changes from moment to moment */
#define DEPTH_LEAST   8
#define DEPTH_MORE    25

#define SEED 88172645463325252u

static uint64_t state = SEED;

static uint32_t below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 33) % n);
}

static void fail(const struct error *e)
{
    fprintf(stderr, "week: %s\n", e->text);
    exit(1);
}

static uint32_t text(struct profile *p, const char *form, uint32_t n)
{
    char name[128];
    snprintf(name, sizeof(name), form, n);
    return profile_string(p, name);
}

/* Three places in each function, in ten modules. */
static void add_code(struct profile *p)
{
    for (uint32_t i = 0; i < 10; i++) {
        struct profile_module m = {.path = text(p, "/usr/lib/x86_64-linux-gnu/libpart%u.so.1", i),
                                   .build_id = text(p, "%040x", i + 1),
                                   .start = 0x7f0000000000u + i * 0x1000000ull,
                                   .end = 0x7f0000000000u + i * 0x1000000ull + 0x800000};
        *vec_push(&p->modules) = m;
    }
    for (uint32_t i = 0; i < 3 * FUNCTIONS; i++) {
        struct profile_line line = {.function = text(p, "part_of_the_program_number_%u", i / 3),
                                    .file = text(p, "/src/server/module/source_file_%u.c", i / 60),
                                    .line = i};
        *vec_push(&p->locations) = (struct profile_location){.module = i % 10,
                                                             .address = 0x1000 + i * 16ull,
                                                             .first_line = (uint32_t)p->lines.len,
                                                             .n_lines = 1};
        *vec_push(&p->lines) = line;
    }
}

/* Each shares the outer half with the one before, as those of a server do; a child's are the first ones of its
 * parent. */
static void add_stacks(struct profile *p, uint32_t n)
{
    uint32_t at[DEPTH_LEAST + DEPTH_MORE], depth = 0;
    uint64_t before = state;
    state = SEED;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t keep = depth / 2;
        memmove(at, at + depth - keep, keep * sizeof(*at));
        uint32_t more = DEPTH_LEAST + below(DEPTH_MORE) - keep % DEPTH_LEAST;
        if (keep + more > DEPTH_LEAST + DEPTH_MORE)
            more = DEPTH_LEAST + DEPTH_MORE - keep;
        memmove(at + more, at, keep * sizeof(*at));
        for (uint32_t i = 0; i < more; i++)
            at[i] = below(3 * FUNCTIONS);
        depth = keep + more;
        *vec_push(&p->stacks) =
            (struct profile_stack){.first = (uint32_t)p->stack_locations.len, .depth = depth};
        for (uint32_t i = 0; i < depth; i++)
            *vec_push(&p->stack_locations) = at[i];
    }
    state = before;
}

static struct profile_sums sums(uint64_t samples, uint32_t size)
{
    double weight = (double)PERIOD / size + .5;
    return (struct profile_sums){samples, (double)samples * size, (double)samples * size * weight,
                                 (double)samples * weight};
}

static void grow(struct profile_cell *c, uint64_t by)
{
    uint32_t size = 1u << c->size_class;
    c->allocated = sums(c->allocated.samples + by, size);
    c->freed = sums(c->allocated.samples / 2, size);
    c->at_peak = sums(c->allocated.samples / 2, size);
    c->temporary_samples = c->freed.samples / 3;
    c->temporary_bytes = c->freed.bytes / 3;
}

static struct profile *image(uint32_t number, uint32_t stacks, uint64_t began_ns)
{
    struct profile *p = profile_new();
    struct profile_image i = {.id = number + 1,
                              .pid = (int32_t)(1000 + number),
                              .comm = text(p, number ? "worker" : "server", 0),
                              .exe = text(p, "/usr/bin/server", 0),
                              .state = PROFILE_IMAGE_EXITED,
                              .began_ns = began_ns,
                              .taken_ns = began_ns,
                              .peak_ns = began_ns + 1,
                              .peak_bytes = 1e9,
                              .rss_anon_bytes = 2000000000};
    *vec_push(&p->images) = i;
    *vec_push(&p->threads) = (struct profile_thread){.tid = i.pid};
    add_code(p);
    add_stacks(p, stacks);
    for (uint32_t k = 0; k < stacks; k++) {
        struct profile_cell c = {.stack = k, .size_class = (uint8_t)(4 + below(12)), .period_bytes = PERIOD};
        grow(&c, 1 + below(20));
        *vec_push(&p->cells) = c;
    }
    return p;
}

static void add_blocks(struct profile *p, uint64_t end_ns)
{
    for (uint32_t k = 0; k < SAMPLES + FREES; k++) {
        uint32_t cell = below((uint32_t)p->cells.len);
        uint64_t size = 1u << p->cells.at[cell].size_class, address = 0x560000000000u + k * 4096ull;
        uint64_t born = end_ns - 1 - (uint64_t)below(86400) * SECOND;
        if (k < SAMPLES)
            *vec_push(&p->samples) = (struct profile_sample){
                .cell = cell, .serial = k + 1, .address = address, .size_bytes = size, .born_ns = born};
        else
            *vec_push(&p->frees) = (struct profile_free){.cell = cell,
                                                         .serial = k + 1,
                                                         .address = address,
                                                         .size_bytes = size,
                                                         .born_ns = born,
                                                         .freed_ns = end_ns,
                                                         .stack = below((uint32_t)p->stacks.len),
                                                         .location = PROFILE_NONE,
                                                         .thread = 0};
    }
}

struct run {
    struct profile *p;
    uint64_t began_ns, end_ns;
    uint32_t points;
};

static void begin(struct run *x, struct recording *r, uint32_t number)
{
    struct error e;
    x->began_ns = BEGAN_NS + number * (WEEK_NS / 2 / CHILDREN);
    x->end_ns = number ? x->began_ns + WEEK_NS / 2 : BEGAN_NS + WEEK_NS;
    x->p = image(number, number ? STACKS_CHILD : STACKS, x->began_ns);
    if (recording_put_image(r, x->p, false, &e))
        fail(&e);
}

static uint64_t next_ns(const struct run *x)
{
    return x->points < POINTS ? x->began_ns + 1 + x->points * ((x->end_ns - x->began_ns) / POINTS)
                              : UINT64_MAX;
}

static void add_point(struct run *x, struct recording *r, uint32_t number)
{
    struct error e;
    uint32_t every = POINTS / (number ? MOMENTS_CHILD : MOMENTS);
    bool moment = x->points % every == 0;
    struct profile_point point = {.time_ns = next_ns(x),
                                  .live_bytes = 1e9,
                                  .allocated_bytes = 1e10 + x->points,
                                  .rss_anon_bytes = 2000000000};
    x->p->images.at[0].taken_ns = x->p->taken_ns = point.time_ns;
    for (size_t c = 0; moment && c < x->p->cells.len / CHANGED; c++)
        grow(&x->p->cells.at[below((uint32_t)x->p->cells.len)], 1);
    if (recording_put_point(r, number + 1, &point, moment ? x->p : NULL, NULL, &e))
        fail(&e);
    x->points++;
}

static void end(struct run *x, struct recording *r, uint32_t number)
{
    struct error e;
    x->p->images.at[0].taken_ns = x->p->taken_ns = x->end_ns;
    if (!number)
        add_blocks(x->p, x->end_ns);
    if (recording_put_image(r, x->p, true, &e) || recording_commit(r, &e))
        fail(&e);
    profile_free(x->p);
}

/* In the order of time, as it comes while programs run. */
static void record(struct recording *r)
{
    static struct run runs[CHILDREN + 1];
    for (uint32_t number = 0; number <= CHILDREN; number++)
        begin(&runs[number], r, number);
    for (;;) {
        uint32_t first = 0;
        for (uint32_t number = 1; number <= CHILDREN; number++)
            if (next_ns(&runs[number]) < next_ns(&runs[first]))
                first = number;
        if (next_ns(&runs[first]) == UINT64_MAX)
            break;
        add_point(&runs[first], r, first);
    }
    for (uint32_t number = 0; number <= CHILDREN; number++)
        end(&runs[number], r, number);
}

int main(int argc, char **argv)
{
    struct recording *r;
    struct error e;
    if (argc != 2) {
        fprintf(stderr, "usage: week FILE\n");
        return 2;
    }
    if (recording_create(&r, argv[1], true, &e))
        fail(&e);
    record(r);
    if (recording_set_number(r, RECORDING_STARTED, (int64_t)BEGAN_NS, &e) ||
        recording_set_number(r, RECORDING_ENDED, (int64_t)(BEGAN_NS + WEEK_NS), &e) || recording_close(r, &e))
        fail(&e);
    return 0;
}
