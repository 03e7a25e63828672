/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/view/watch: screens, compared as a whole; the zone is UTC.
 */
#include "test_view_truth.h"

#include "view/profile/watch_view.h"

static const struct watch_view view = {.style = {.columns = 100, .utf8 = true}, .top = 2, .frames = 2};

/* A look at the shop, with marks as they could be. */
static struct watch_snapshot *shop_look(enum watch_snapshot_kind kind, bool changed)
{
    struct watch_snapshot *l = mem_alloc(sizeof(*l));
    *l = (struct watch_snapshot){.time_ns = TAKEN, .number = 3, .kind = kind};
    struct watch_snapshot_image *i = vec_push(&l->images);
    i->profile = shop(PERIOD);
    i->profile->images.at[0].state = PROFILE_IMAGE_RUNNING;
    i->rollup = rollup_new(i->profile, &(struct rollup_options){.keep_sample = any_sample});
    i->live = i->rollup->total.of[ROLLUP_LIVE].bytes;
    i->older_than_ns = 5 * SECOND;
    i->changed = changed;
    for (uint32_t k = 0; k < 4; k++)
        *vec_push(&i->rows) = (struct watch_snapshot_row){.number = k};
    return l;
}

static void assert_screen(struct watch_snapshot *l, const char *expected)
{
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    watch_write(&out, l, &view);
    assert_int_equal(sink_finish(&out), 0);
    assert_string_equal(buf_str(&b), expected);
    buf_release(&b);
    watch_snapshot_free(l);
}

static void all_of_it(void **state)
{
    (void)state;
    struct watch_snapshot *l = shop_look(WATCH_SNAPSHOT_ALL, false);
    struct watch_snapshot_row *rows = l->images.at[0].rows.at;
    rows[1].growth = (struct growth){.growing = true,
                                     .bytes_per_hour = 1.25 * MIB,
                                     .interval = {0.8 * MIB, 1.6 * MIB},
                                     .since_ns = BEGAN - 5 * SECOND};
    l->images.at[0].dismissed = 1234;
    assert_screen(
        l, "2026-11-21 14:04:24 UTC  shop (4242): live 15.1 MiB (10.7–20.9), older than 5 s 15.1 MiB "
           "(10.7–20.9), 1,234 samples dismissed\n"
           "         OLD  95 % INTERVAL  SAMPLES  FRESH  OLDEST  MARKS\n"
           "    8.03 MiB      4.60–13.0       16          2m32s\n"
           "        value_new   value.h:12 inlined\n"
           "        json_parse  parse.c:214\n"
           "        … 2 more frames\n"
           "    6.01 MiB      4.08–9.58        7          2m05s  growing +1.25 MiB/h (0.80–1.60) over 2m13s\n"
           "        operator new(unsigned long)                                                "
           "(libstdc++.so.6)\n"
           "        std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&)  cache.cc:88\n"
           "        … 2 more frames\n"
           "    … 2 more, together 6.8 %\n");
}

static void changes_only(void **state)
{
    (void)state;
    struct watch_snapshot *l = shop_look(WATCH_SNAPSHOT_CHANGES, true);
    struct watch_snapshot_row *rows = l->images.at[0].rows.at;
    rows[0].fresh_samples = 3;
    rows[2].is_new = true;
    rows[2].fresh_samples = 1;
    rows[2].growth = (struct growth){
        .growing = true, .bytes_per_hour = 300, .interval = {100, 500}, .since_ns = BEGAN - 5 * SECOND};
    assert_screen(l,
                  "2026-11-21 14:04:24 UTC  shop (4242): live 15.1 MiB (10.7–20.9), older than 5 s 15.1 "
                  "MiB (10.7–20.9)\n"
                  "         OLD  95 % INTERVAL  SAMPLES  FRESH  OLDEST  MARKS\n"
                  "    8.03 MiB      4.60–13.0       16      3   2m32s\n"
                  "        value_new   value.h:12 inlined\n"
                  "        json_parse  parse.c:214\n"
                  "        … 2 more frames\n"
                  "     545 KiB      64.0–2927        1      1    60 s  new, growing +300 B/h (100–500) over "
                  "2m13s\n"
                  "        shop+0x8010            (shop)\n"
                  "        [JIT or unknown code]\n"
                  "    … 2 more, together 43 %\n");
}

/* Before there are enough snapshots to judge. */
static void growth_so_far(void **state)
{
    (void)state;
    struct watch_snapshot *l = shop_look(WATCH_SNAPSHOT_CHANGES, true);
    struct watch_snapshot_row *row = &l->images.at[0].rows.at[3];
    row->fresh_samples = 1;
    row->growth = (struct growth){.so_far = true,
                                  .snapshots = 3,
                                  .bytes_per_hour = 60 * MIB,
                                  .interval = {30 * MIB, 95 * MIB},
                                  .since_ns = TAKEN - 15 * SECOND};
    assert_screen(l, "2026-11-21 14:04:24 UTC  shop (4242): live 15.1 MiB (10.7–20.9), older than 5 s 15.1 "
                     "MiB (10.7–20.9)\n"
                     "        OLD  95 % INTERVAL  SAMPLES  FRESH  OLDEST  MARKS\n"
                     "    512 KiB      13.0–2853        1      1     3 s  so far +60.0 MiB/h (30.0–95.0), "
                     "snapshot 3 of 8\n"
                     "        node_new  tree.c:3\n"
                     "        walk      tree.c:9\n"
                     "        … 4 more frames, then [cut]\n"
                     "    … 3 more, together 97 %\n");
}

static void marks_that_go(void **state)
{
    (void)state;
    struct watch_snapshot *l = shop_look(WATCH_SNAPSHOT_CHANGES, true);
    l->images.at[0].rows.at[3].turned = true;
    assert_screen(l, "2026-11-21 14:04:24 UTC  shop (4242): live 15.1 MiB (10.7–20.9), older than 5 s 15.1 "
                     "MiB (10.7–20.9)\n"
                     "        OLD  95 % INTERVAL  SAMPLES  FRESH  OLDEST  MARKS\n"
                     "    512 KiB      13.0–2853        1            3 s  no longer growing\n"
                     "        node_new  tree.c:3\n"
                     "        walk      tree.c:9\n"
                     "        … 4 more frames, then [cut]\n"
                     "    … 3 more, together 97 %\n");
}

static void nothing_new(void **state)
{
    (void)state;
    assert_screen(shop_look(WATCH_SNAPSHOT_CHANGES, false),
                  "2026-11-21 14:04:24 UTC  shop (4242): live 15.1 MiB (10.7–20.9), older than 5 s 15.1 MiB "
                  "(10.7–20.9), nothing new\n");
    struct watch_snapshot *l = shop_look(WATCH_SNAPSHOT_CHANGES, false),
                          *other = shop_look(WATCH_SNAPSHOT_CHANGES, false);
    *vec_push(&l->images) = other->images.at[0];
    other->images.len = 0;
    watch_snapshot_free(other);
    assert_true(watch_snapshot_is_quiet(l));
    assert_screen(l, "2026-11-21 14:04:24 UTC  2 processes: live 30.1 MiB (23.8–38.0), older than 5 s 30.1 "
                     "MiB (23.8–38.0), nothing new\n");
}

static void beginnings_ends_and_alerts(void **state)
{
    (void)state;
    struct watch_snapshot *l = shop_look(WATCH_SNAPSHOT_CHANGES, false);
    *vec_push(&l->ended) = (struct watch_snapshot_ended){.pid = 7, .comm = mem_strdup("bad\x1b[2J")};
    *vec_push(&l->alerts) =
        (struct watch_snapshot_alert){.row = PROFILE_NONE, .condition = mem_strdup("live>1M")};
    *vec_push(&l->alerts) =
        (struct watch_snapshot_alert){.row = 1, .condition = mem_strdup("growing for 1h")};
    l->images.at[0].rows.at[1].growth = (struct growth){.growing = true,
                                                        .bytes_per_hour = 2.5 * 1024 * MIB,
                                                        .interval = {2.0 * 1024 * MIB, 3.1 * 1024 * MIB},
                                                        .since_ns = BEGAN - 5 * SECOND};
    assert_false(watch_snapshot_is_quiet(l));
    assert_screen(l, "2026-11-21 14:04:24 UTC  bad?[2J (7) has ended, or runs another program\n"
                     "2026-11-21 14:04:24 UTC  ALERT live>1M: shop (4242): live 15.1 MiB (10.7–20.9)\n"
                     "2026-11-21 14:04:24 UTC  ALERT growing for 1h: shop (4242): operator new(unsigned "
                     "long) grows by +2.50 GiB/h (2.00–3.10) over 2m13s\n"
                     "2026-11-21 14:04:24 UTC  shop (4242): live 15.1 MiB (10.7–20.9), older than 5 s 15.1 "
                     "MiB (10.7–20.9), nothing new\n");
    l = mem_alloc(sizeof(*l));
    *l = (struct watch_snapshot){.time_ns = TAKEN, .number = 1, .kind = WATCH_SNAPSHOT_ALL};
    assert_screen(l, "2026-11-21 14:04:24 UTC  no process with a ledger\n");
}

static void recent_frees(void **state)
{
    (void)state;
    struct watch_snapshot *l = shop_look(WATCH_SNAPSHOT_FREES, false);
    struct profile *p = l->images.at[0].profile;
    struct profile_free f = {.cell = 0,
                             .serial = 900,
                             .size_bytes = 4 * KIB,
                             .born_ns = TAKEN - 90 * SECOND,
                             .freed_ns = TAKEN - 60 * SECOND,
                             .stack = PROFILE_NONE,
                             .location = PROFILE_NONE,
                             .thread = PROFILE_NONE};
    *vec_push(&p->frees) = f;
    f.freed_ns = TAKEN - 3 * SECOND;
    f.stack = CACHE;
    f.reallocated = true;
    *vec_push(&p->frees) = f;
    f.freed_ns = TAKEN - 80 * SECOND;
    f.stack = PROFILE_NONE;
    f.location = 1;
    *vec_push(&p->frees) = f;
    assert_screen(l,
                  "2026-11-21 14:04:24 UTC  shop (4242): 3 sampled objects freed lately, the latest first\n"
                  "     AGO  LIVED   SIZE  BY       ALLOCATED IN            FREED IN\n"
                  "     3 s   87 s  4 KiB  realloc  json_parse parse.c:214  std::map<std::string,… Item>&&) "
                  "cache.cc:88\n"
                  "    60 s   30 s  4 KiB  free     json_parse parse.c:214  -\n"
                  "    … 1 more\n");
    l = shop_look(WATCH_SNAPSHOT_FREES, false);
    assert_screen(l, "2026-11-21 14:04:24 UTC  shop (4242): 0 sampled objects freed lately\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("all of it, with growth and what was dismissed", all_of_it),
        TEST("only what has changed, stacks known before shortened", changes_only),
        TEST("growth is shown before there are enough snapshots to judge it", growth_so_far),
        TEST("a mark that goes is told", marks_that_go),
        TEST("nothing new is one line, of several processes too", nothing_new),
        TEST("ends, alerts, and nothing at all", beginnings_ends_and_alerts),
        TEST("recent frees, the latest first", recent_frees),
    };
    setenv("TZ", "UTC", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
