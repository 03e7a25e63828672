/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/who and its screens. The independent truth is a map of memory, a byte a cell, into which the blocks are
 * painted one by one: who holds an address is read off it.
 */
#include "test_view_truth.h"

#include "base/units.h"
#include "view/profile/who_view.h"

#define MEMORY_BYTES 4096
#define BASE         0x10000u
#define BLOCKS       60

static uint64_t draw(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* For each byte of memory the blocks that have it, as bits; live ones and freed ones apart. */
struct painted {
    uint64_t live[MEMORY_BYTES], freed[MEMORY_BYTES];
};

static void paint(uint64_t *bytes, uint64_t address, uint64_t n, size_t block)
{
    for (uint64_t i = 0; i < n && address - BASE + i < MEMORY_BYTES; i++)
        bytes[address - BASE + i] |= 1ull << block;
}

static struct profile *random_profile(uint64_t seed, struct painted *m)
{
    struct profile *p = profile_new();
    memset(m, 0, sizeof(*m));
    for (int i = 0; i < 2; i++) {
        uint32_t image = add_image(p, "shop", 100 + i, "/bin/shop");
        uint32_t stack = add_stack(p, PROFILE_STACK_WHOLE, 0, NULL);
        *vec_push(&p->cells) = (struct profile_cell){
            .image = image, .stack = stack, .thread = image, .period_bytes = 1, .freed = {.samples = 1000}};
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        struct profile_sample s = {.cell = (uint32_t)draw(&seed) % 2,
                                   .serial = i,
                                   .address = BASE + draw(&seed) % MEMORY_BYTES,
                                   .size_bytes = draw(&seed) % 40,
                                   .slack_bytes = draw(&seed) % 3 * 8};
        *vec_push(&p->samples) = s;
        paint(m->live, s.address, s.size_bytes + s.slack_bytes + !(s.size_bytes + s.slack_bytes), i);
        struct profile_free f = {.cell = (uint32_t)draw(&seed) % 2,
                                 .serial = 1000 + i,
                                 .address = BASE + draw(&seed) % MEMORY_BYTES,
                                 .size_bytes = draw(&seed) % 100,
                                 .freed_ns = TAKEN - draw(&seed) % 20,
                                 .stack = PROFILE_NONE,
                                 .location = PROFILE_NONE,
                                 .thread = PROFILE_NONE};
        *vec_push(&p->frees) = f;
        paint(m->freed, f.address, f.size_bytes + !f.size_bytes, i);
    }
    assert_true(profile_valid(p));
    return p;
}

static void check_order(const struct address_info *w, const struct profile *p)
{
    for (size_t i = 1; i < w->holding.len; i++) {
        const struct address_info_block *one = &w->holding.at[i - 1], *next = &w->holding.at[i];
        assert_true(one->live || !next->live);
        if (!one->live)
            assert_true(p->frees.at[one->index].freed_ns >= p->frees.at[next->index].freed_ns);
    }
}

static void holders_are_those_of_a_map_of_memory(void **state)
{
    static struct painted m;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct profile *p = random_profile(seed, &m);
        for (uint64_t at = 0; at < MEMORY_BYTES; at++) {
            struct address_info w;
            uint64_t live = 0, freed = 0;
            address_info_find(&w, p, BASE + at);
            vec_each (const struct address_info_block, b, &w.holding) {
                uint64_t begin = b->live ? p->samples.at[b->index].address : p->frees.at[b->index].address;
                uint64_t size =
                    b->live ? p->samples.at[b->index].size_bytes : p->frees.at[b->index].size_bytes;
                uint64_t from = BASE + at - begin;
                bool inside = from < size || !from;
                assert_int_equal(b->place, inside ? ADDRESS_INFO_INSIDE : ADDRESS_INFO_SLACK);
                assert_int_equal(b->bytes, inside ? from : from - size);
                *(b->live ? &live : &freed) |= 1ull << b->index;
            }
            assert_int_equal(live, m.live[at]);
            assert_int_equal(freed, m.freed[at]);
            assert_true(!w.holding.len || !w.near.len);
            check_order(&w, p);
            address_info_release(&w);
        }
        profile_free(p);
    }
}

/* How far the nearest byte of the same kind is, upwards or downwards, by looking at one byte after another. */
static uint64_t scan(const uint64_t *bytes, uint64_t at, int step)
{
    for (uint64_t far = 1; far <= ADDRESS_INFO_NEAR_BYTES; far++) {
        uint64_t to = at + (uint64_t)((int64_t)far * step);
        if (to >= MEMORY_BYTES)
            return 0;
        if (bytes[to])
            return far;
    }
    return 0;
}

static void neighbours_are_the_nearest_of_the_map(void **state)
{
    static struct painted m;
    unsigned seen[2][2] = {{0}};
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct profile *p = random_profile(seed, &m);
        for (uint64_t at = ADDRESS_INFO_NEAR_BYTES; at < MEMORY_BYTES - ADDRESS_INFO_NEAR_BYTES - 200; at++) {
            struct address_info w;
            uint64_t nearest[2][2] = {{0}}; /* live, behind -> bytes */
            if (m.live[at] || m.freed[at])
                continue;
            address_info_find(&w, p, BASE + at);
            vec_each (const struct address_info_block, b, &w.near) {
                uint64_t *known = &nearest[b->live][b->place == ADDRESS_INFO_BEHIND];
                uint64_t far = b->bytes, size = b->live ? p->samples.at[b->index].size_bytes
                                                        : p->frees.at[b->index].size_bytes;
                uint64_t has = size + (b->live ? p->samples.at[b->index].slack_bytes : 0);
                if (b->place == ADDRESS_INFO_BEHIND)
                    far += size + 1 - (has ? has : 1);
                *known = !*known || far < *known ? far : *known;
                seen[b->live][b->place == ADDRESS_INFO_BEHIND]++;
            }
            assert_int_equal(nearest[1][0], scan(m.live, at, 1));
            assert_int_equal(nearest[0][0], scan(m.freed, at, 1));
            assert_int_equal(nearest[1][1], scan(m.live, at, -1));
            assert_int_equal(nearest[0][1], scan(m.freed, at, -1));
            address_info_release(&w);
        }
        profile_free(p);
    }
    assert_true(seen[0][0] && seen[0][1] && seen[1][0] && seen[1][1]);
}

static void sizes_that_wrap_around_are_harmless(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    p->samples.len = 0;
    *vec_push(&p->samples) = (struct profile_sample){
        .address = UINT64_MAX - 4, .size_bytes = UINT64_MAX, .slack_bytes = UINT64_MAX};
    struct address_info w;
    address_info_find(&w, p, UINT64_MAX);
    assert_int_equal(w.holding.len, 1);
    assert_int_equal(w.holding.at[0].bytes, 4);
    address_info_release(&w);
    address_info_find(&w, p, 0);
    assert_int_equal(w.holding.len + w.near.len, 0);
    address_info_release(&w);
    profile_free(p);
}

/** A binomial truth: that so many of 200,000 draws begin a sample. */
static void chance_is_that_of_the_draw(void **state)
{
    static const uint64_t sizes[] = {1, 24, 500, 1000, 4000};
    uint64_t seed = 7;
    (void)state;
    assert_true(address_info_chance(0, 1) == 1 && address_info_chance(5, 1) == 1);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        unsigned hits = 0, draws = 200000;
        for (unsigned k = 0; k < draws; k++) /* the gap to the next sample, exponential */
            hits += -1000 * log(((double)(draw(&seed) >> 11) + 0.5) * 0x1p-53) < (double)sizes[i];
        double chance = address_info_chance(sizes[i], 1000), sigma = sqrt(draws * chance * (1 - chance));
        assert_true(fabs(hits - draws * chance) < 5 * sigma + 1);
    }
}

/* ---- screens ---- */

/**
 * The shop, with a cached block of 200 bytes freed by walk() 2 s before the end, whose address was another one's
 * before.
 */
static struct profile *shop_with_frees(uint64_t period)
{
    struct profile *p = shop(period);
    struct profile_free f = {.cell = 1,
                             .address = 0x5000,
                             .size_bytes = 200,
                             .born_ns = TAKEN - 5 * SECOND,
                             .freed_ns = TAKEN - 2 * SECOND,
                             .stack = WALK,
                             .location = PROFILE_NONE};
    *vec_push(&p->frees) = f;
    f.born_ns -= 100 * SECOND;
    f.freed_ns -= 100 * SECOND;
    f.size_bytes = 64;
    f.reallocated = true;
    f.stack = PROFILE_NONE;
    f.location = 2; /* main */
    *vec_push(&p->frees) = f;
    return p;
}

static const char freed_screen[] =
    "0x5020 in shop.allium\n"
    "  exact: every allocation\n"
    "\n"
    "Freed in shop (pid 4242): 32 bytes into the 200 bytes at 0x5000\n"
    "  freed 2 s before the end, at 14:04:22, after a lifetime of 3 s, by thread 4242\n"
    "      node_new  tree.c:3\n"
    "      walk      tree.c:9\n"
    "      … 4 more frames\n"
    "  allocated by thread 4242\n"
    "      operator new(unsigned long)                                                (libstdc++.so.6)\n"
    "      std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&)  cache.cc:88\n"
    "      … 2 more frames\n"
    "\n"
    "Freed in shop (pid 4242): 32 bytes into the 64 bytes at 0x5000\n"
    "  moved or resized by realloc 1m42s before the end, at 14:02:42, after a lifetime of 3 s, by thread\n"
    "  4242\n"
    "      main  main.c:33\n"
    "      [its callers were not recorded]\n"
    "  allocated by thread 4242\n"
    "      operator new(unsigned long)                                                (libstdc++.so.6)\n"
    "      std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&)  cache.cc:88\n"
    "      … 2 more frames\n";

static const char top_screen[] =
    "0x5000 in shop.allium\n"
    "  exact: every allocation\n"
    "\n"
    "Freed in shop (pid 4242): the first byte of the 200 bytes at 0x5000\n"
    "  freed 2 s before the end, at 14:04:22, after a lifetime of 3 s, by thread 4242\n"
    "      node_new  tree.c:3\n"
    "      walk      tree.c:9\n"
    "      … 4 more frames\n"
    "  allocated by thread 4242\n"
    "      operator new(unsigned long)                                                (libstdc++.so.6)\n"
    "      std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&)  cache.cc:88\n"
    "      … 2 more frames\n"
    "\n"
    "  … 1 more, freed before these\n";

static const char slack_screen[] =
    "0x90cb in shop.allium\n"
    "  sampled every 512 KiB on average\n"
    "\n"
    "Live in shop (pid 4242): 3 bytes past the end of the 200 bytes at 0x9000\n"
    "  1 s old now, and the allocator added 8 bytes of slack: a write to this address is an overflow\n"
    "  allocated by thread 4242\n"
    "      operator new(unsigned long)                                                (libstdc++.so.6)\n"
    "      std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&)  cache.cc:88\n"
    "      … 2 more frames\n";

static const char near_screen[] =
    "0x4ff8 in shop.allium: in no known block, live or freed\n"
    "\n"
    "Blocks within 64 bytes, which do not contain the address, but may have been overrun\n"
    "\n"
    "Freed in shop (pid 4242): 8 bytes before the 200 bytes at 0x5000\n"
    "  freed 2 s before the end, at 14:04:22, after a lifetime of 3 s, by thread 4242\n"
    "      node_new  tree.c:3\n"
    "      walk      tree.c:9\n"
    "      … 4 more frames\n"
    "  allocated by thread 4242\n"
    "      operator new(unsigned long)                                                (libstdc++.so.6)\n"
    "      std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&)  cache.cc:88\n"
    "      … 2 more frames\n"
    "\n"
    "  Of 88 frees the last 2 are remembered, the oldest from 1m42s before the last snapshot; the history\n"
    "  of threads that free often is shorter.\n"
    "  Every allocation was sampled: malloc returned no block there, or its free is no longer remembered;\n"
    "  ask sooner after the free.\n";

static const char unknown_screen[] =
    "0x1234 in shop.allium: in no known block, live or freed\n"
    "\n"
    "  sampled every 512 KiB on average: the chance that a block of this size is a sample, and so is\n"
    "  known\n"
    "        16 B  1 in 32,769\n"
    "       256 B   1 in 2,049\n"
    "       4 KiB     1 in 129\n"
    "      64 KiB         12 %\n"
    "       1 MiB         86 %\n"
    "  Of 88 frees of samples the last 2 are remembered, the oldest from 1m42s before the last snapshot;\n"
    "  the history of threads that free often is shorter.\n"
    "  To be certain, run the program again and sample each allocation: allium run --period 1 -- PROGRAM\n";

static const char unknown_size_screen[] =
    "0x1234 in shop.allium: in no known block, live or freed\n"
    "\n"
    "  sampled every 512 KiB on average: the chance that a block of this size is a sample, and so is\n"
    "  known\n"
    "      1.50 KiB  1 in 342\n"
    "  Of 88 frees of samples the last 2 are remembered, the oldest from 1m42s before the last snapshot;\n"
    "  the history of threads that free often is shorter.\n"
    "  Some samples are missing, see the end of `allium report`.\n"
    "  To be certain, run the program again and sample each allocation: allium run --period 1 -- PROGRAM\n";

static const char past_screen[] =
    "0x1234 in shop.allium: in no known block, live or freed\n"
    "  for a past moment only the blocks are known that were also live, or freed lately, at the end\n"
    "\n"
    "  sampled every 512 KiB on average: the chance that a block of this size is a sample, and so is\n"
    "  known\n"
    "      1.50 KiB  1 in 342\n"
    "  Of 88 frees of samples none is remembered.\n"
    "  Some samples are missing, see the end of `allium report`.\n"
    "  To be certain, run the program again and sample each allocation: allium run --period 1 -- PROGRAM\n";

static const char nothing_screen[] =
    "0x1234 in shop.allium: in no known block, live or freed\n"
    "\n"
    "  Nothing was sampled, and the period is not known: the chance of a sample cannot be given.\n"
    "  There were 0 frees of samples.\n"
    "  To be certain, run the program again and sample each allocation: allium run --period 1 -- PROGRAM\n";

static const char frees_screen[] =
    "shop (pid 4242), exited\n"
    "  shop.allium\n"
    "  sampled every 512 KiB on average; STANDS FOR: the number of frees that a row represents\n"
    "  88 sampled blocks freed, of which the last 2 are remembered, the oldest from 1m42s before the last "
    "snapshot\n"
    "\n"
    "Freed, latest first\n"
    "          WHEN  LIFETIME   SIZE  STANDS FOR  ADDRESS  ALLOCATED BY                  HOW      FREED BY   "
    "             THREAD\n"
    "  14:04:22.000       3 s  200 B       2.62k   0x5000  std::map<std:...st, Item>&&)  free     node_new < "
    "walk < walk  4242\n"
    "  14:02:42.000       3 s   64 B       8.19k   0x5000  std::map<std:...st, Item>&&)  realloc  main       "
    "             4242\n";

static const char narrow_screen[] =
    "shop (pid 4242), exited\n"
    "  shop.allium\n"
    "  sampled every 512 KiB on average; STANDS FOR: the number of frees that a row represents\n"
    "  88 sampled blocks freed, of which the last 2 are remembered, the oldest from 1m42s before the last\n"
    "  snapshot\n"
    "  only where size>1\n"
    "\n"
    "Freed, latest first\n"
    "          WHEN  LIFETIME   SIZE  ADDRESS  ALLOCATED BY                  HOW   FREED BY\n"
    "  14:04:22.000       3 s  200 B   0x5000  std::map<std:...st, Item>&&)  free  node_new < walk < walk\n"
    "  no room for STANDS FOR, THREAD\n"
    "  ... 1 more\n";

static void assert_screen(const struct profile *p, uint64_t address, const struct who_options *o,
                          const char *expected)
{
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    struct address_info w;
    address_info_find(&w, p, address);
    who_write(&out, &w, p, o);
    assert_string_equal(buf_str(&b), expected);
    address_info_release(&w);
    buf_release(&b);
}

static const struct who_options plain = {
    .style = {.columns = 100, .utf8 = true}, .source = "shop.allium", .size_bytes = UINT64_MAX, .frames = 2};

static void screen_of_freed_blocks(void **state)
{
    (void)state;
    struct profile *p = shop_with_frees(1);
    assert_screen(p, 0x5020, &plain, freed_screen);
    struct who_options one = plain;
    one.top = 1;
    assert_screen(p, 0x5000, &one, top_screen);
    profile_free(p);
}

static void screen_of_live_blocks(void **state)
{
    (void)state;
    struct profile *p = shop_with_frees(PERIOD);
    p->images.at[0].state = PROFILE_IMAGE_RUNNING;
    *vec_push(&p->samples) = (struct profile_sample){
        .cell = 1, .address = 0x9000, .size_bytes = 200, .slack_bytes = 8, .born_ns = TAKEN - SECOND};
    assert_screen(p, 0x9000 + 203, &plain, slack_screen);
    profile_free(p);
}

static void screen_of_neighbours(void **state)
{
    (void)state;
    struct profile *p = shop_with_frees(1);
    p->cells.at[0].freed.samples = 44;
    assert_screen(p, 0x5000 - 8, &plain, near_screen);
    profile_free(p);
}

static void screens_of_the_unknown(void **state)
{
    (void)state;
    struct profile *p = shop_with_frees(PERIOD);
    struct who_options o = plain;
    assert_screen(p, 0x1234, &plain, unknown_screen);
    o.size_bytes = 1536;
    p->images.at[0].losses[PROFILE_LOST_SAMPLES] = 3;
    assert_screen(p, 0x1234, &o, unknown_size_screen);
    send_back(p, 0);
    p->frees.len = 0;
    assert_screen(p, 0x1234, &o, past_screen);
    profile_free(p);
    p = profile_new();
    assert_screen(p, 0x1234, &plain, nothing_screen);
    profile_free(p);
}

static void screen_of_frees(void **state)
{
    (void)state;
    struct profile *p = shop_with_frees(PERIOD);
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    struct frees_options o = {.style = {.columns = 140}, .source = "shop.allium"};
    uint32_t *order = address_info_latest_frees(p);
    frees_write(&out, p, order, 2, &o);
    assert_string_equal(buf_str(&b), frees_screen);
    buf_reset(&b);
    o.style.columns = 100;
    o.top = 1;
    o.filter = "where size>1";
    frees_write(&out, p, order, 2, &o);
    assert_string_equal(buf_str(&b), narrow_screen);
    free(order);
    buf_release(&b);
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("who holds an address is what a map of memory says", holders_are_those_of_a_map_of_memory),
        TEST("neighbours are the nearest blocks of a map of memory", neighbours_are_the_nearest_of_the_map),
        TEST("sizes that wrap around are harmless", sizes_that_wrap_around_are_harmless),
        TEST("the chance of being sampled is that of the draw", chance_is_that_of_the_draw),
        TEST("a live address shows that it is past the end", screen_of_live_blocks),
        TEST("an address near a block shows it as a hint", screen_of_neighbours),
        TEST("an unknown address shows how likely it had been known, and what to do", screens_of_the_unknown),
        TEST("frees show who, when and how, the latest first", screen_of_frees),
        TEST("a freed address shows who freed it and who had allocated it, the latest first",
             screen_of_freed_blocks),
    };
    return cmocka_run_group_tests(tests, use_utc, NULL);
}
