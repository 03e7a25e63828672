/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_VIEW_TRUTH
#define TEST_VIEW_TRUTH

/*
 * What the tests of rollups and views share, included by each: profiles made by hand, whose truth is known because
 * every object of them is written down here.
 */

#include "base/buf.h"
#include "model/profile/profile.h"
#include "model/profile/rollup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define TEST(sentence, function)                                                                             \
    {                                                                                                        \
        sentence, function, NULL, NULL, NULL                                                                 \
    }

/** Group set-up of tests whose screens have times of day in them. */
static inline int use_utc(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    return 0;
}

#define SECOND  1000000000ull
#define BEGAN   (1795269731ull * SECOND) /* 2026-11-21 14:02:11 UTC */
#define TAKEN   (BEGAN + 133 * SECOND)
#define PERIOD  (512u << 10)
#define KIB     1024u
#define MIB     (1024u * 1024)
#define SHOP_AT 0x555555554000u

static inline uint32_t add_image(struct profile *p, const char *comm, int pid, const char *exe)
{
    struct profile_image image = {.id = 0x1000u + (unsigned)pid,
                                  .pid = pid,
                                  .parent_pid = 1,
                                  .comm = profile_string(p, comm),
                                  .exe = profile_string(p, exe),
                                  .state = PROFILE_IMAGE_EXITED,
                                  .began_ns = BEGAN,
                                  .taken_ns = TAKEN,
                                  .ledger_bytes = MIB,
                                  .ledger_limit_bytes = 64 * MIB};
    p->taken_ns = TAKEN;
    *vec_push(&p->images) = image;
    *vec_push(&p->threads) = (struct profile_thread){.image = (uint32_t)p->images.len - 1, .tid = pid};
    return (uint32_t)p->images.len - 1;
}

static inline uint32_t add_module(struct profile *p, const char *path, uint64_t start)
{
    char id[17]; /* of the file, not of the module: the same in each process */
    snprintf(id, sizeof(id), "%016zx", strlen(path) * 0x0123456789abcdu);
    struct profile_module module = {.path = profile_string(p, path),
                                    .build_id = profile_string(p, id),
                                    .start = start,
                                    .end = start + 0x100000,
                                    .bias = start};
    *vec_push(&p->modules) = module;
    return (uint32_t)p->modules.len - 1;
}

/** A location without a name. */
static inline uint32_t add_location(struct profile *p, uint32_t module, uint64_t address)
{
    *vec_push(&p->locations) =
        (struct profile_location){.module = module, .address = address, .first_line = (uint32_t)p->lines.len};
    return (uint32_t)p->locations.len - 1;
}

/** Gives the newest location a further name, of a function that the ones before are inlined into. */
static inline void add_line(struct profile *p, const char *function, const char *file, uint32_t line)
{
    struct profile_location *l = &p->locations.at[p->locations.len - 1];
    if (l->n_lines++)
        p->lines.at[p->lines.len - 1].inlined = true;
    struct profile_line row = {
        .function = profile_string(p, function), .file = profile_string(p, file), .line = line};
    *vec_push(&p->lines) = row;
}

static inline uint32_t add_code(struct profile *p, uint32_t module, uint64_t address, const char *function,
                                const char *file, uint32_t line)
{
    uint32_t location = add_location(p, module, address);
    add_line(p, function, file, line);
    return location;
}

static inline uint32_t add_stack(struct profile *p, enum profile_stack_end end, uint32_t depth,
                                 const uint32_t *locations)
{
    struct profile_stack stack = {.first = (uint32_t)p->stack_locations.len, .depth = depth, .end = end};
    for (uint32_t i = 0; i < depth; i++)
        *vec_push(&p->stack_locations) = locations[i];
    *vec_push(&p->stacks) = stack;
    return (uint32_t)p->stacks.len - 1;
}

/** What was sampled of objects of one size from one stack, in one thread. */
struct objects {
    uint32_t image, stack, thread;
    uint64_t size, period;
    uint32_t allocated, live, peak, temporary;
    uint64_t age; /* seconds, of the youngest live one; each of the others is 10 s older */
    uint64_t slack;
};

static inline struct profile_sums sums_of(const struct objects *o, uint32_t samples)
{
    double w = rollup_weight(o->size, o->period), k = samples, size = (double)o->size;
    return (struct profile_sums){
        .samples = samples, .seen_bytes = k * size, .bytes = k * size * w, .count = k * w};
}

static inline uint32_t add_objects(struct profile *p, struct objects o)
{
    struct profile_cell cell = {
        .image = o.image,
        .stack = o.stack,
        .thread = o.thread,
        .size_class = o.size ? (uint8_t)(63 - __builtin_clzll(o.size)) : 0,
        .period_bytes = o.period,
        .allocated = sums_of(&o, o.allocated),
        .freed = sums_of(&o, o.allocated - o.live),
        .at_peak = sums_of(&o, o.peak),
        .temporary_samples = o.temporary,
        .temporary_bytes = sums_of(&o, o.temporary).bytes,
    };
    for (uint32_t i = 0; i < o.live; i++)
        *vec_push(&p->samples) = (struct profile_sample){.cell = (uint32_t)p->cells.len,
                                                         .serial = p->samples.len + 1,
                                                         .address = 0x7f0000000000u + 64 * p->samples.len,
                                                         .size_bytes = o.size,
                                                         .slack_bytes = o.slack,
                                                         .born_ns = TAKEN - (o.age + 10 * i) * SECOND};
    *vec_push(&p->cells) = cell;
    return (uint32_t)p->cells.len - 1;
}

/* ---- a web shop: a parser, a cache, a recursion, a compiler, and a stack that is deeper than is kept ---- */

enum shop_module { SHOP, LIBJSON, LIBCPP, AGENT, SHOP_MODULES };
enum shop_stack { PARSE, CACHE, WALK, JIT, DEEP, SHOP_STACKS };

static inline void add_shop_modules(struct profile *p, uint64_t at)
{
    add_module(p, "/opt/shop/bin/shop", at);
    add_module(p, "/usr/lib/libjson.so.1", 0x7ffff7000000u);
    add_module(p, "/usr/lib/libstdc++.so.6", 0x7ffff7200000u);
    add_module(p, "/usr/lib/allium/liballium-agent.so", 0x7ffff7400000u);
}

/** The stacks, in the order of enum shop_stack; returns the first. Modules begin at `m`. */
static inline uint32_t add_shop_stacks(struct profile *p, uint32_t m)
{
    uint32_t agent = add_code(p, m + AGENT, 0x1100, "malloc", "hooks.c", 88);
    uint32_t main_load = add_code(p, m + SHOP, 0x1010, "main", "/src/shop/main.c", 31);
    uint32_t main_serve = add_code(p, m + SHOP, 0x1020, "main", "/src/shop/main.c", 33);
    uint32_t load = add_code(p, m + SHOP, 0x2010, "load_catalogue", "/src/shop/catalogue.c", 77);
    uint32_t serve = add_code(p, m + SHOP, 0x3010, "serve", "/src/shop/serve.c", 120);
    uint32_t parse = add_location(p, m + LIBJSON, 0x4010);
    add_line(p, "value_new", "/src/json/value.h", 12);
    add_line(p, "json_parse", "/src/json/parse.c", 214);
    uint32_t operator_new = add_code(p, m + LIBCPP, 0x5010, "operator new(unsigned long)", "", 0);
    uint32_t insert = add_code(p, m + SHOP, 0x6010,
                               "std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&)",
                               "/src/shop/cache.cc", 88);
    uint32_t walk = add_code(p, m + SHOP, 0x7010, "walk", "/src/shop/tree.c", 9);
    uint32_t node = add_code(p, m + SHOP, 0x7110, "node_new", "/src/shop/tree.c", 3);
    uint32_t emit = add_location(p, m + SHOP, 0x8010);
    uint32_t first = (uint32_t)p->stacks.len;
    add_stack(p, PROFILE_STACK_WHOLE, 4, (uint32_t[]){agent, parse, load, main_load});
    add_stack(p, PROFILE_STACK_WHOLE, 5, (uint32_t[]){agent, operator_new, insert, serve, main_serve});
    add_stack(p, PROFILE_STACK_WHOLE, 7, (uint32_t[]){agent, node, walk, walk, walk, serve, main_serve});
    add_stack(p, PROFILE_STACK_NO_CODE, 2, (uint32_t[]){agent, emit});
    add_stack(p, PROFILE_STACK_CUT, 5, (uint32_t[]){node, walk, walk, walk, walk});
    return first;
}

static inline void add_shop_objects(struct profile *p, uint32_t image, uint32_t first, uint64_t period)
{
    struct objects o = {.image = image, .thread = image, .period = period};
    o = (struct objects){image, first + PARSE, image, 4 * KIB, period, 60, 16, 50, 4, 2, 8};
    add_objects(p, o);
    o = (struct objects){image, first + CACHE, image, 200, period, 30, 6, 9, 12, 1, 8};
    add_objects(p, o);
    o = (struct objects){image, first + CACHE, image, 3 * MIB, period, 5, 1, 2, 0, 125, 0};
    add_objects(p, o);
    o = (struct objects){image, first + WALK, image, 48, period, 12, 0, 3, 9, 0, 0};
    add_objects(p, o);
    o = (struct objects){image, first + JIT, image, 64 * KIB, period, 4, 1, 1, 0, 60, 0};
    add_objects(p, o);
    o = (struct objects){image, first + DEEP, image, 48, period, 2, 1, 1, 1, 3, 0};
    add_objects(p, o);
}

/** An image as a recording has it at a moment before its end, a minute after it began. */
static inline void send_back(struct profile *p, uint32_t image)
{
    struct profile_image *i = &p->images.at[image];
    i->state = PROFILE_IMAGE_RUNNING;
    i->past = true;
    i->taken_ns = BEGAN + 60 * SECOND;
    i->peak_ns = 0;
    i->peak_bytes = 0;
    vec_each (struct profile_cell, c, &p->cells)
        if (c->image == image) {
            c->at_peak = (struct profile_sums){.samples = 0};
            c->temporary_samples = 0;
            c->temporary_bytes = 0;
        }
}

static inline bool keep_none(void *arg, const struct profile *p, uint32_t cell)
{
    (void)arg;
    return cell >= p->cells.len;
}

static inline bool any_sample(void *arg, const struct profile *p, uint32_t sample)
{
    (void)arg;
    return sample < p->samples.len;
}

static inline struct profile *shop(uint64_t period)
{
    struct profile *p = profile_new();
    uint32_t image = add_image(p, "shop", 4242, "/opt/shop/bin/shop");
    struct profile_image *i = &p->images.at[image];
    add_shop_modules(p, SHOP_AT);
    add_shop_objects(p, image, add_shop_stacks(p, 0), period);
    i->peak_ns = BEGAN + 61 * SECOND;
    i->peak_bytes = 40.0 * MIB;
    i->cold_ns = 4100000;
    i->rss_anon_bytes = 30 * MIB;
    uint32_t args = profile_string(p, "/opt/shop/bin/shop --listen 8080");
    i->args = args;
    assert_true(profile_valid(p));
    return p;
}

/* ---- rollups ---- */

static inline struct rollup *roll(const struct profile *p, enum rollup_group group, enum rollup_sort sort)
{
    const struct rollup_options o = {.group = group, .sort = sort};
    return rollup_new(p, &o);
}

static inline const struct rollup_row *row_named(const struct rollup *r, const char *name)
{
    vec_each (const struct rollup_row, row, &r->rows)
        if (!strcmp(row->name, name))
            return row;
    fail_msg("no row is called %s", name);
    return NULL;
}

static inline double live_of(const struct rollup_values *v)
{
    return v->of[ROLLUP_LIVE].bytes.value;
}

static inline void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fmax(fabs(a), fabs(b)) + 1e-9)
        fail_msg("%.17g is not %.17g", a, b);
}

#endif
