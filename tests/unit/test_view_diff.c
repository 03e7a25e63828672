/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/view/diff: screens, compared as a whole (the zone is UTC), and JSON that a strict parser reads.
 */
#include "test_view_json.h"

#include <time.h>

static void diff_of_two_runs(void **state)
{
    (void)state;
    struct profile *before = shop(PERIOD), *after = shop(PERIOD);
    after->images.at[0].id++;
    after->cells.at[0].allocated.samples *= 9;
    after->cells.at[0].allocated.seen_bytes *= 9;
    after->cells.at[0].allocated.bytes *= 9;
    after->cells.at[0].allocated.count *= 9;
    struct buf out = diff_of(before, after, ROLLUP_BY_STACK), report = report_of(after, ROLLUP_BY_STACK, 0);
    struct buf both = BUF_INIT;
    buf_printf(&both, "[%s, %s]", buf_str(&out), buf_str(&report));
    check_json(
        &both,
        "d, r = j\n"
        "assert (d['schema'], d['version'], d['group'], d['sort']) == ('allium-diff', 3, 'stack', 'live')\n"
        "assert d['matched_by_name'] and d['images_in_both'] == 0 and d['apart_ns'] is None\n"
        "assert d['before']['source'] == 'old.allium' and d['after']['periods_bytes'] == [524288]\n"
        "live, total = d['total']['live'], r['total']\n"
        "for end in '', '_low', '_high':\n"
        "    for what in 'bytes', 'count':\n"
        "        assert live['after_' + what + end] == total['live_' + what.replace('count', 'objects') + "
        "end], (what, end)\n"
        "change = live['change_bytes']\n"
        "assert abs(change - live['after_bytes'] + live['before_bytes']) <= 1 and change > 200 << 20\n"
        "assert 0 < live['change_bytes_low'] < change < live['change_bytes_high']\n"
        "assert not live['bytes_within_noise']\n"
        "first = d['rows'][0]\n"
        "assert first['name'] == 'value_new' and not first['within_noise']\n"
        "assert all(f['address'] is None for f in first['stack']) and first['stack'][0]['line'] == 12\n"
        "assert [row['within_noise'] for row in d['rows'][1:]] == [True] * (len(d['rows']) - 1)\n"
        "assert d['rows'][0]['self']['change_bytes'] == change\n"
        "assert d['conditions'] == [{'condition': 'live+10%', 'met': True, 'undecided': False, "
        "'needed_period_bytes': None, 'needed_captures': None}]\n");
    buf_release(&both);
    buf_release(&report);
    buf_release(&out);
    profile_free(before);
    profile_free(after);
}

static void diff_of_two_moments(void **state)
{
    (void)state;
    struct profile *before = shop(PERIOD), *after = shop(PERIOD);
    send_back(before, 0);
    struct buf out = diff_of(before, after, ROLLUP_BY_FUNCTION);
    check_json(&out, "assert not j['matched_by_name'] and j['images_in_both'] == 1\n"
                     "assert j['apart_ns'] == 73 * 10**9 and j['live_bytes_per_hour'] == 0\n"
                     "assert j['total']['peak'] is None and j['total']['temporary'] is None\n"
                     "assert j['total']['live']['change_bytes'] == 0 and j['rows'] == []\n"
                     "assert j['rows_unchanged'] == 12 and j['total']['live']['bytes_within_noise']\n");
    buf_release(&out);
    profile_free(before);
    profile_free(after);
}

/* ---- screens ---- */

static struct buf screen(const struct profile *before, const struct profile *after, struct diff_options o,
                         struct diff_view_options view)
{
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    struct diff *d = diff_new(before, after, &o);
    diff_write(&out, d, &view);
    assert_int_equal(sink_finish(&out), 0);
    diff_free(d);
    return b;
}

static void assert_screen(struct buf *b, const char *expected)
{
    assert_string_equal(buf_str(b), expected);
    buf_release(b);
}

static const char moments_screen[] =
    "shop (pid 4242), at two moments\n"
    "  before  shop.allium@1m, 2026-11-21 14:03:11 UTC\n"
    "  after   process 4242, 2026-11-21 14:04:24 UTC, 73 s later\n"
    "  sampled every 512 KiB on average; in brackets the 95 % interval of the change\n"
    "\n"
    "  live         within noise: -2.00 MiB (-5.30 to +1.88 MiB), 21.1 MiB → 19.1 MiB\n"
    "  objects      +11.8k (+0.48k to +80.0k), 28.7k → 40.5k\n"
    "  peak         -\n"
    "  allocated    +4.01 MiB (+1.74 to +7.90 MiB), 75.3 MiB → 79.3 MiB\n"
    "  allocations  +11.8k (+0.48k to +80.0k), 239k → 251k\n"
    "  temporary    -\n"
    "  detects      growth of live memory from 6.16 MiB (29 %) on, in 19 of 20 cases\n"
    "\n"
    "Change in live bytes, by stack, innermost call first\n"
    "     CHANGE       95 % INTERVAL      BEFORE     AFTER  VERDICT\n"
    "  -6.01 MiB  -8.40 to -4.17 MiB    12.0 MiB  6.01 MiB  shrank\n"
    "      operator new(unsigned long)                                                (libstdc++.so.6)\n"
    "      std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&)  cache.cc:88\n"
    "      … 2 more frames\n"
    "  +3.51 MiB  +0.72 to +7.23 MiB    8.03 MiB  11.5 MiB  grew\n"
    "      value_new   value.h:12 inlined\n"
    "      json_parse  parse.c:214\n"
    "      … 2 more frames\n"
    "   +512 KiB  -1.41 to +2.79 MiB  < 1.84 MiB   512 KiB  within noise\n"
    "      node_new  tree.c:3\n"
    "      walk      tree.c:9\n"
    "      … 4 more frames\n"
    "  2 without a change\n"
    "\n"
    "Compared\n"
    "  1 process image sample by sample: objects live at both moments affect neither the change nor its\n"
    "  interval.\n"
    "Lost before\n"
    "  nothing\n"
    "Lost after\n"
    "  nothing\n";

/** Seven new samples of one stack, one of another, and two large objects that are gone. */
static void screen_of_two_moments(void **state)
{
    (void)state;
    struct profile *before = shop(PERIOD), *after = shop(PERIOD);
    struct objects gone = {0, CACHE, 0, 3 * MIB, PERIOD, 2, 2, 2, 0, 0, 0};
    add_objects(before, gone);
    send_back(before, 0);
    gone.live = 0;
    add_objects(after, gone);
    add_objects(after, (struct objects){0, PARSE, 0, 4 * KIB, PERIOD, 7, 7, 0, 0, 0, 0});
    add_objects(after, (struct objects){0, WALK, 0, 48, PERIOD, 1, 1, 0, 0, 0, 0});
    struct buf b = screen(before, after, (struct diff_options){.group = ROLLUP_BY_STACK},
                          (struct diff_view_options){.style = {.columns = 100, .utf8 = true},
                                                     .source = {"shop.allium@1m", "process 4242"},
                                                     .top = 12,
                                                     .frames = 2});
    assert_screen(&b, moments_screen);
    profile_free(before);
    profile_free(after);
}

static const char runs_screen[] = "shop (pid 4242), against shop (pid 4242)\n"
                                  "  before  old.allium, 2026-11-21 14:04:24 UTC\n"
                                  "  after   new.allium, 2026-11-21 14:04:24 UTC\n"
                                  "  exact: every allocation\n"
                                  "  only where func:json_*\n"
                                  "\n"
                                  "  live         +28.0 KiB, 3.13 MiB -> 3.15 MiB\n"
                                  "  objects      +7, 25 -> 32\n"
                                  "  peak         no change, 6.26 MiB -> 6.26 MiB\n"
                                  "  allocated    +36.0 KiB, 15.5 MiB -> 15.5 MiB\n"
                                  "  allocations  +9, 113 -> 122\n"
                                  "  temporary    no change, 18.8 KiB -> 18.8 KiB\n"
                                  "\n"
                                  "Change in live bytes, by function; TOTAL with its callees\n"
                                  "     CHANGE    BEFORE     AFTER       SELF  VERDICT  FUNCTION\n"
                                  "  +28.0 KiB  64.0 KiB  92.0 KiB  +28.0 KiB  grew     value_new\n"
                                  "  +28.0 KiB  64.0 KiB  92.0 KiB        0 B  grew     json_parse\n"
                                  "  +28.0 KiB  64.0 KiB  92.0 KiB        0 B  grew     load_catalogue\n"
                                  "  no room for MODULE\n"
                                  "  ... 1 more, 1 certain; 8 without a change\n"
                                  "\n"
                                  "Compared\n"
                                  "  1 process image before and 1 after without common samples: intervals\n"
                                  "  include the uncertainty of both, and stacks are matched by the names\n"
                                  "  of their functions.\n"
                                  "Lost before\n"
                                  "  nothing\n"
                                  "Lost after\n"
                                  "  2 stacks deeper than the limit, marked [cut]: outer callers are\n"
                                  "  unknown. Use the innermost calls, or --by function.\n";

static void screen_of_two_runs(void **state)
{
    (void)state;
    struct profile *before = shop(1), *after = shop(1);
    after->images.at[0].id++;
    after->images.at[0].losses[PROFILE_LOST_STACK_CUT] = 2;
    add_objects(after, (struct objects){0, PARSE, 0, 4 * KIB, 1, 9, 7, 0, 0, 0, 0});
    struct buf b =
        screen(before, after, (struct diff_options){.group = ROLLUP_BY_FUNCTION, .inclusive = true},
               (struct diff_view_options){.style = {.columns = 70},
                                          .source = {"old.allium", "new.allium"},
                                          .filter = "where func:json_*",
                                          .top = 3});
    assert_screen(&b, runs_screen);
    profile_free(before);
    profile_free(after);
}

static const char nothing_screen[] = "a source without samples, against a source without samples\n"
                                     "  before  a.allium\n"
                                     "  after   a.allium\n"
                                     "  no sample is stored; in brackets the 95 % interval of the change\n"
                                     "\n"
                                     "  live         -\n"
                                     "  objects      -\n"
                                     "  peak         -\n"
                                     "  allocated    -\n"
                                     "  allocations  -\n"
                                     "  temporary    -\n"
                                     "\n"
                                     "Change in live bytes, by stack, innermost call first\n"
                                     "  nothing\n"
                                     "\n"
                                     "Compared\n"
                                     "  nothing\n"
                                     "Lost before\n"
                                     "  nothing\n"
                                     "Lost after\n"
                                     "  nothing\n";

static void screen_of_nothing(void **state)
{
    (void)state;
    struct profile *p = profile_new();
    struct buf b = screen(p, p, (struct diff_options){.group = ROLLUP_BY_STACK},
                          (struct diff_view_options){.source = {"a.allium", "a.allium"}});
    assert_screen(&b, nothing_screen);
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("JSON of two runs has the sides of their reports, and the change", diff_of_two_runs),
        TEST("JSON of two moments has their distance, and null for what is not known", diff_of_two_moments),
        TEST("two moments: what grew, what shrank, what is noise", screen_of_two_moments),
        TEST("two runs, exact, narrow and in ASCII", screen_of_two_runs),
        TEST("two sources in which nothing is", screen_of_nothing),
    };
    setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
