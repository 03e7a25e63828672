/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/rollup: rows of a profile whose truth is known, and what must hold of the rows of any profile.
 */
#include "test_view_truth.h"

/* ---- the shop, exactly ---- */

static void function_rows(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    struct rollup *r = roll(p, ROLLUP_BY_FUNCTION, ROLLUP_SORT_LIVE);
    const struct rollup_row *row = row_named(r, "value_new");
    assert_near(live_of(&row->self), 16 * 4096);
    assert_near(row->self.of[ROLLUP_PEAK].bytes.value, 50 * 4096);
    assert_near(row->self.of[ROLLUP_ALLOCATED].bytes.value, 60 * 4096);
    assert_near(row->self.of[ROLLUP_ALLOCATED].count.value, 60);
    assert_near(row->self.of[ROLLUP_TEMPORARY].bytes.value, 4 * 4096);
    assert_near(row->self.of[ROLLUP_TEMPORARY].count.value, 4);
    assert_string_equal(row->module, "/usr/lib/libjson.so.1");
    assert_string_equal(row->file, "/src/json/value.h");
    row = row_named(r, "json_parse");
    assert_near(live_of(&row->self), 0);
    assert_near(live_of(&row->inclusive), 16 * 4096);
    row = row_named(r, "main");
    assert_near(live_of(&row->inclusive), 16 * 4096 + 6 * 200 + 3.0 * MIB);
    assert_true(rollup_exact(&row->inclusive.of[ROLLUP_LIVE].bytes));
    rollup_free(r);
    profile_free(p);
}

static void recursion_counts_once(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    struct rollup *r = roll(p, ROLLUP_BY_FUNCTION, ROLLUP_SORT_ALLOCATED);
    const struct rollup_row *row = row_named(r, "walk");
    assert_near(row->inclusive.of[ROLLUP_ALLOCATED].bytes.value, (12 + 2) * 48);
    assert_near(row->self.of[ROLLUP_ALLOCATED].bytes.value, 0);
    rollup_free(r);
    profile_free(p);
}

static void ends_and_agent(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    struct rollup *r = roll(p, ROLLUP_BY_FUNCTION, ROLLUP_SORT_LIVE);
    assert_near(live_of(&row_named(r, "[cut]")->inclusive), 48);
    assert_near(live_of(&row_named(r, "[JIT or unknown code]")->inclusive), 64 * KIB);
    assert_near(live_of(&row_named(r, "shop+0x8010")->self), 64 * KIB);
    vec_each (const struct rollup_row, row, &r->rows)
        assert_string_not_equal(row->name, "malloc");
    rollup_free(r);
    profile_free(p);
}

static void every_end_has_a_name(void **state)
{
    static const char *const names[] = {"[no stack]", "[cut]", "[JIT or unknown code]", "[no unwind rules]",
                                        "[broken stack]"};
    (void)state;
    struct profile *p = profile_new();
    uint32_t image = add_image(p, "shop", 1, "/shop");
    for (int end = PROFILE_STACK_WHOLE; end <= PROFILE_STACK_BROKEN; end++)
        add_objects(p, (struct objects){image, add_stack(p, (enum profile_stack_end)end, 0, NULL), 0, 16, 1,
                                        1, 1, 1, 0, 0, 0});
    for (int group = ROLLUP_BY_STACK; group <= ROLLUP_BY_OWNER; group++) {
        struct rollup *r = roll(p, (enum rollup_group)group, ROLLUP_SORT_LIVE);
        if (group == ROLLUP_BY_DIRECTORY) { /* code without a file has one for all */
            assert_int_equal(r->rows.len, 1);
            assert_near(live_of(&row_named(r, "[unknown]")->self), 5 * 16);
            rollup_free(r);
            continue;
        }
        assert_int_equal(r->rows.len, 5);
        for (int i = 0; i < 5; i++)
            assert_near(live_of(&row_named(r, names[i])->self), 16);
        rollup_free(r);
    }
    profile_free(p);
}

static void unknown_code_is_named_once(void **state)
{
    (void)state;
    struct profile *p = profile_new();
    add_image(p, "shop", 1, "/shop");
    uint32_t jit = add_location(p, PROFILE_NONE, 0);
    struct frames frames = {0};
    frames_of(&frames, p, add_stack(p, PROFILE_STACK_NO_CODE, 1, &jit));
    assert_int_equal(frames.len, 1);
    char scratch[FRAME_NAME_BYTES];
    assert_string_equal(frame_function(p, frames.at, scratch), "[JIT or unknown code]");
    vec_release(&frames);
    profile_free(p);
}

static void owners(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    struct rollup *r = roll(p, ROLLUP_BY_OWNER, ROLLUP_SORT_PEAK);
    assert_int_equal(r->rows.len, 4);
    assert_string_equal(r->rows.at[0].name,
                        "std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&)");
    assert_near(live_of(&row_named(r, "json_parse")->self), 16 * 4096); /* value_new is inlined into it */
    assert_near(live_of(&row_named(r, "shop+0x8010")->self), 64 * KIB);
    assert_near(row_named(r, "node_new")->self.of[ROLLUP_PEAK].bytes.value, 4 * 48);
    rollup_free(r);
    profile_free(p);
}

static void files_and_modules(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    struct rollup *r = roll(p, ROLLUP_BY_FILE, ROLLUP_SORT_LIVE);
    assert_near(live_of(&row_named(r, "libstdc++.so.6 (source unknown)")->self), 6 * 200 + 3.0 * MIB);
    assert_near(live_of(&row_named(r, "/src/shop/tree.c")->inclusive), 48);
    assert_near(live_of(&row_named(r, "shop (source unknown)")->self), 64 * KIB);
    rollup_free(r);
    r = roll(p, ROLLUP_BY_MODULE, ROLLUP_SORT_LIVE);
    assert_int_equal(r->rows.len, 3);
    assert_near(live_of(&row_named(r, "/opt/shop/bin/shop")->inclusive), live_of(&r->total));
    assert_near(live_of(&row_named(r, "/opt/shop/bin/shop")->self), 64 * KIB + 48);
    rollup_free(r);
    profile_free(p);
}

static void sizes_and_threads(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    uint32_t name = profile_string(p, "pool-1");
    *vec_push(&p->threads) = (struct profile_thread){.image = 0, .tid = 4250, .name = name};
    *vec_push(&p->threads) = (struct profile_thread){.image = 0};
    add_objects(p, (struct objects){0, PARSE, 1, 0, 1, 3, 1, 1, 0, 0, 16});
    add_objects(p, (struct objects){0, PARSE, 2, 1 << 20, 1, 3, 1, 1, 0, 0, 0});
    struct rollup *r = roll(p, ROLLUP_BY_SIZE, ROLLUP_SORT_ALLOCATIONS);
    assert_near(row_named(r, "4 KiB to 8 KiB")->self.of[ROLLUP_ALLOCATED].count.value, 60);
    assert_near(row_named(r, "0 B to 2 B")->self.of[ROLLUP_ALLOCATED].count.value, 3);
    assert_string_equal(r->rows.at[0].name, "4 KiB to 8 KiB");
    assert_string_equal(r->rows.at[1].name, "128 B to 256 B");
    rollup_free(r);
    r = roll(p, ROLLUP_BY_THREAD, ROLLUP_SORT_LIVE);
    assert_near(row_named(r, "shop/pool-1 (4250)")->self.of[ROLLUP_LIVE].count.value, 1);
    assert_near(live_of(&row_named(r, "shop/other threads (4242)")->self), MIB);
    assert_int_equal(row_named(r, "shop (4242)")->index, 0);
    rollup_free(r);
    profile_free(p);
}

static void two_processes(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    uint32_t image = add_image(p, "shop", 4343, "/opt/shop/bin/shop"), m = (uint32_t)p->modules.len;
    add_shop_modules(p, SHOP_AT + 0x5000000);
    add_shop_objects(p, image, add_shop_stacks(p, m), 1);
    assert_true(profile_valid(p));
    struct rollup *r = roll(p, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    assert_int_equal(r->rows.len, SHOP_STACKS);
    assert_near(live_of(&r->rows.at[0].self), 2 * (6 * 200 + 3.0 * MIB));
    rollup_free(r);
    r = roll(p, ROLLUP_BY_PROCESS, ROLLUP_SORT_LIVE);
    assert_int_equal(r->rows.len, 2);
    assert_string_equal(r->rows.at[1].name, "shop (4343)");
    assert_near(live_of(&r->rows.at[0].self), live_of(&r->rows.at[1].self));
    rollup_free(r);
    r = roll(p, ROLLUP_BY_THREAD, ROLLUP_SORT_LIVE);
    assert_string_equal(r->rows.at[1].name, "shop (4343)");
    rollup_free(r);
    profile_free(p);
}

static void same_name_in_two_modules(void **state)
{
    (void)state;
    struct profile *p = profile_new();
    uint32_t image = add_image(p, "shop", 1, "/shop");
    uint32_t a = add_code(p, add_module(p, "/lib/a.so", 0x1000), 16, "init", "a.c", 1);
    uint32_t b = add_code(p, add_module(p, "/lib/bb.so", 0x9000), 16, "init", "b.c", 1);
    add_objects(p, (struct objects){image, add_stack(p, PROFILE_STACK_WHOLE, 2, (uint32_t[]){a, b}), 0, 10, 1,
                                    1, 1, 1, 0, 0, 0});
    struct rollup *r = roll(p, ROLLUP_BY_FUNCTION, ROLLUP_SORT_LIVE);
    assert_int_equal(r->rows.len, 2);
    assert_string_equal(r->rows.at[0].module, "/lib/a.so");
    assert_string_equal(r->rows.at[1].module, "/lib/bb.so");
    rollup_free(r);
    profile_free(p);
}

/* ---- ages, filters, orders ---- */

static void ages(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    struct rollup *r = roll(p, ROLLUP_BY_STACK, ROLLUP_SORT_AGE);
    /* 16 objects of one size, 2 s to 152 s old: the eighth oldest is the median. */
    assert_string_equal(r->rows.at[0].name, "value_new");
    assert_int_equal(r->rows.at[0].self.oldest_ns, 152 * SECOND);
    assert_int_equal(r->rows.at[0].self.median_ns, 82 * SECOND);
    assert_int_equal(r->rows.at[0].self.aged_samples, 16);
    /* One of 3 MiB outweighs six of 200 bytes, though they are younger. */
    assert_string_equal(r->rows.at[1].name, "operator new(unsigned long)");
    assert_int_equal(r->rows.at[1].self.median_ns, 125 * SECOND);
    assert_int_equal(r->total.oldest_ns, 152 * SECOND);
    assert_int_equal(r->rows.at[r->rows.len - 1].self.aged_samples, 0);
    rollup_free(r);
    profile_free(p);
}

static bool is_class_12(void *arg, const struct profile *p, uint32_t cell)
{
    (*(int *)arg)++;
    return p->cells.at[cell].size_class == 12;
}

static bool is_older_than_100s(void *arg, const struct profile *p, uint32_t sample)
{
    (void)arg;
    return p->taken_ns - p->samples.at[sample].born_ns > 100 * SECOND;
}

static void filtered_cells(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    int asked = 0;
    const struct rollup_options o = {.group = ROLLUP_BY_FUNCTION, .keep = is_class_12, .arg = &asked};
    struct rollup *r = rollup_new(p, &o);
    assert_true(asked > 0);
    assert_int_equal(r->rows.len, 4); /* value_new, json_parse, load_catalogue, main */
    assert_near(live_of(&r->total), p->cells.at[0].allocated.bytes - p->cells.at[0].freed.bytes);
    assert_int_equal(r->total.aged_samples, 16);
    rollup_free(r);
    profile_free(p);
}

static void filtered_samples(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    const struct rollup_options o = {.group = ROLLUP_BY_STACK, .keep_sample = is_older_than_100s};
    struct rollup *r = rollup_new(p, &o);
    double w = rollup_weight(4096, PERIOD);
    /* 102 s to 152 s; the large one is 125 s old. */
    assert_near(live_of(&row_named(r, "value_new")->self), 6 * 4096 * w);
    assert_near(row_named(r, "value_new")->self.of[ROLLUP_LIVE].count.value, 6 * w);
    assert_near(live_of(&row_named(r, "operator new(unsigned long)")->self),
                3 * MIB * rollup_weight(3 * MIB, PERIOD));
    assert_int_equal(row_named(r, "value_new")->self.median_ns, 132 * SECOND);
    assert_near(r->total.of[ROLLUP_ALLOCATED].bytes.value, 0);
    assert_int_equal(r->total.of[ROLLUP_LIVE].bytes.samples, 7);
    rollup_free(r);
    profile_free(p);
}

static void all_samples_are_the_cells(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    const struct rollup_options o = {.group = ROLLUP_BY_FUNCTION, .keep_sample = any_sample};
    struct rollup *a = rollup_new(p, &o), *b = roll(p, ROLLUP_BY_FUNCTION, ROLLUP_SORT_LIVE);
    assert_int_equal(a->rows.len, b->rows.len);
    for (size_t i = 0; i < a->rows.len; i++) {
        const struct rollup_value *x = &a->rows.at[i].self.of[ROLLUP_LIVE];
        const struct rollup_value *y = &row_named(b, a->rows.at[i].name)->self.of[ROLLUP_LIVE];
        struct interval i_x = estimate_interval(&x->bytes), i_y = estimate_interval(&y->bytes);
        assert_near(x->bytes.value, y->bytes.value);
        assert_near(x->count.value, y->count.value);
        assert_near(i_x.low, i_y.low);
        assert_near(i_x.high, i_y.high);
    }
    rollup_free(a);
    rollup_free(b);
    profile_free(p);
}

static void weights(void **state)
{
    (void)state;
    assert_near(rollup_weight(100, 1), 1);
    assert_near(rollup_weight(PERIOD, PERIOD), 1 / (1 - exp(-1)));
    assert_true(rollup_weight(0, PERIOD) < 2 * PERIOD); /* finite */
    assert_near(rollup_weight(UINT64_MAX, PERIOD), 1);
}

static void nothing_at_all(void **state)
{
    (void)state;
    struct profile *p = profile_new();
    for (int group = ROLLUP_BY_STACK; group <= ROLLUP_BY_PROCESS; group++) {
        struct rollup *r = roll(p, (enum rollup_group)group, ROLLUP_SORT_LIVE);
        assert_int_equal(r->rows.len, 0);
        assert_near(live_of(&r->total), 0);
        rollup_free(r);
    }
    profile_free(p);
}

/* ---- any profile ---- */

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/** Stacks of calls among twenty functions, some inlined, often recursive, all begun by main. */
static struct profile *any_profile(uint64_t seed, uint64_t period)
{
    struct profile *p = profile_new();
    uint32_t stacks[40], code[20], path[30];
    random_state = seed;
    for (int i = 0; i < 3; i++)
        add_image(p, "any", 100 + i, "/any");
    uint32_t module = add_module(p, "/any", 0x1000), other = add_module(p, "/other.so", 0x900000);
    for (uint32_t i = 0; i < 20; i++) {
        char name[8], file[8];
        snprintf(name, sizeof(name), "f%u", i);
        snprintf(file, sizeof(file), "%u.c", i % 5);
        code[i] = add_code(p, i % 3 ? module : other, 16 * i, i ? name : "main", i % 7 ? file : "", i);
        if (i && !draw(3))
            add_line(p, "outer", "outer.c", 1);
    }
    for (int i = 0; i < 40; i++) {
        uint32_t depth = 1 + draw(29);
        for (uint32_t k = 0; k + 1 < depth; k++)
            path[k] = code[1 + draw(19)];
        path[depth - 1] = code[0];
        stacks[i] = add_stack(p, PROFILE_STACK_WHOLE, depth, path);
    }
    for (int i = 0; i < 200; i++) {
        uint32_t image = draw(3), k = 1 + draw(9);
        add_objects(p, (struct objects){image, stacks[draw(40)], image, 1 + draw(1u << draw(24)), period, k,
                                        draw(k + 1), draw(k + 1), 0, draw(1000), 0});
    }
    assert_true(profile_valid(p));
    return p;
}

static void assert_rows_hold(const struct rollup *r)
{
    for (int m = 0; m < ROLLUP_METRICS; m++) {
        double bytes = 0, count = 0;
        uint64_t samples = 0;
        const struct rollup_value *total = &r->total.of[m];
        vec_each (const struct rollup_row, row, &r->rows) {
            const struct rollup_value *self = &row->self.of[m], *inclusive = &row->inclusive.of[m];
            bytes += self->bytes.value;
            count += self->count.value;
            samples += self->bytes.samples;
            assert_true(inclusive->bytes.value >= self->bytes.value * (1 - 1e-12));
            assert_true(inclusive->count.value >= self->count.value * (1 - 1e-12));
            assert_true(inclusive->bytes.value <= total->bytes.value * (1 + 1e-12));
            if (r->options.group == ROLLUP_BY_FUNCTION && !strcmp(row->name, "main"))
                assert_near(inclusive->bytes.value, total->bytes.value);
        }
        assert_near(bytes, total->bytes.value);
        assert_near(count, total->count.value);
        assert_int_equal(samples, total->bytes.samples);
    }
    for (size_t i = 1; i < r->rows.len; i++)
        assert_true(rollup_sort_value(r->options.sort, &r->rows.at[i - 1].self) >=
                    rollup_sort_value(r->options.sort, &r->rows.at[i].self));
}

static void properties(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct profile *p = any_profile(seed, seed % 3 ? PERIOD : 1);
        for (int group = ROLLUP_BY_STACK; group <= ROLLUP_BY_PROCESS; group++) {
            struct rollup *r = roll(p, (enum rollup_group)group, (enum rollup_sort)(seed % 6));
            assert_rows_hold(r);
            rollup_free(r);
        }
        profile_free(p);
    }
}

static void assert_same_values(const struct rollup_values *a, const struct rollup_values *b)
{
    assert_memory_equal(a->of, b->of, sizeof(a->of));
    assert_int_equal(a->unknown, b->unknown);
    assert_int_equal(a->aged_samples, b->aged_samples);
    assert_int_equal(a->oldest_ns, b->oldest_ns);
    assert_int_equal(a->median_ns, b->median_ns);
}

static bool is_odd_cell(void *arg, const struct profile *p, uint32_t cell)
{
    (void)arg;
    return cell < p->cells.len && cell % 2;
}

static void assert_largest(const struct profile *p, const struct rollup_options *o, size_t n)
{
    struct rollup *all = rollup_new(p, o), *few = rollup_largest_processes(p, o, n);
    enum rollup_metric metric = rollup_sort_metric(o->sort);
    assert_int_equal(few->rows.len, all->rows.len);
    for (size_t i = 0; i < all->rows.len; i++) {
        const struct rollup_row *a = &all->rows.at[i], *b = &few->rows.at[i];
        assert_int_equal(a->index, b->index);
        assert_true(rollup_sort_value(o->sort, &a->self) == rollup_sort_value(o->sort, &b->self));
        if (i < n || o->keep_sample) {
            assert_same_values(&a->self, &b->self);
            assert_same_values(&a->inclusive, &b->inclusive);
        }
    }
    assert_memory_equal(&all->total.of[metric], &few->total.of[metric], sizeof(all->total.of[metric]));
    assert_int_equal(all->total.unknown, few->total.unknown);
    rollup_free(all);
    rollup_free(few);
}

static void largest_processes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct profile *p = any_profile(seed, seed % 3 ? PERIOD : 1);
        for (int sort = ROLLUP_SORT_LIVE; sort <= ROLLUP_SORT_AGE; sort++)
            for (size_t n = 0; n <= 4; n++) {
                struct rollup_options o = {.group = ROLLUP_BY_PROCESS, .sort = (enum rollup_sort)sort};
                assert_largest(p, &o, n);
                o.keep = is_odd_cell;
                assert_largest(p, &o, n);
            }
        const struct rollup_options old = {.group = ROLLUP_BY_PROCESS, .keep_sample = any_sample};
        assert_largest(p, &old, 1);
        profile_free(p);
    }
}

/** The same, in the plainest way: cells whose stack has the name anywhere. */
static double holds(const struct profile *p, const char *name)
{
    struct frames frames = {0};
    char scratch[FRAME_NAME_BYTES];
    double sum = 0;
    vec_each (const struct profile_cell, c, &p->cells) {
        bool has = false;
        frames_of(&frames, p, c->stack);
        vec_each (const struct frame, f, &frames)
            has |= !strcmp(frame_function(p, f, scratch), name);
        sum += has ? c->allocated.bytes : 0;
    }
    vec_release(&frames);
    return sum;
}

static void inclusive_by_brute_force(void **state)
{
    (void)state;
    struct profile *p = any_profile(77, PERIOD);
    struct rollup *r = roll(p, ROLLUP_BY_FUNCTION, ROLLUP_SORT_ALLOCATED);
    vec_each (const struct rollup_row, row, &r->rows)
        if (strcmp(row->name, "outer")) /* in two modules */
            assert_near(row->inclusive.of[ROLLUP_ALLOCATED].bytes.value, holds(p, row->name));
    rollup_free(r);
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a function's row has what it allocated itself, and what it called", function_rows),
        TEST("a recursive function counts each object once", recursion_counts_once),
        TEST("where a stack ends is a frame at its root, and the agent is none at its leaf", ends_and_agent),
        TEST("a stack without frames is called after its end", every_end_has_a_name),
        TEST("a stack that ends in a frame of unknown code does not say so twice",
             unknown_code_is_named_once),
        TEST("the owner is the first function outside libraries of the run time, not inlined", owners),
        TEST("files are paths, modules too, and what is not known is called after its module",
             files_and_modules),
        TEST("sizes are powers of two, and threads have names and numbers", sizes_and_threads),
        TEST("the same stack in two processes is one row, at whatever address", two_processes),
        TEST("functions of the same name in two modules are two rows", same_name_in_two_modules),
        TEST("the oldest is the oldest sample, the median is weighted by bytes", ages),
        TEST("cells that are filtered out count nowhere", filtered_cells),
        TEST("of filtered samples only the live values are known, with the weights of the samples",
             filtered_samples),
        TEST("a filter that keeps all samples gives what the cells give", all_samples_are_the_cells),
        TEST("a weight is the inverse of the probability", weights),
        TEST("an empty profile has no rows", nothing_at_all),
        TEST("of any profile, exclusive values add up to the total and inclusive ones lie between",
             properties),
        TEST("of the largest processes all is told, and of the others what puts them in order",
             largest_processes),
        TEST("inclusive values are those of all stacks that have the function", inclusive_by_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
