/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/view: the parts of what people read: figures, names, paragraphs, sinks, tables.
 */
#include "test_view_truth.h"

#include "model/table/table.h"
#include "view/table/table_view.h"
#include "view/text/text.h"

#include <errno.h>

static const struct text_style utf8 = {.utf8 = true}, ascii = {.utf8 = false};

static void assert_text(struct buf *b, const char *expected)
{
    assert_string_equal(buf_str(b), expected);
    buf_reset(b);
}

/* ---- figures ---- */

static struct estimate estimate_of(uint32_t samples, uint64_t size, uint64_t period, bool count)
{
    const struct objects o = {.size = size, .period = period};
    const struct profile_sums s = sums_of(&o, samples);
    const struct profile_cell cell = {.period_bytes = period};
    struct estimate e = {0};
    if (count)
        profile_estimate_count(&e, &cell, &s);
    else
        profile_estimate_bytes(&e, &cell, &s);
    return e;
}

static void figures(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct estimate e = estimate_of(100, 1000, PERIOD, false);
    text_add_figure(&b, &utf8, &e, TEXT_BYTES);
    assert_text(&b, "50.0 MiB (40.7–60.9)");
    text_add_figure(&b, &ascii, &e, TEXT_BYTES);
    assert_text(&b, "50.0 MiB (40.7-60.9)");
    e = estimate_of(100, 1000, PERIOD, true);
    text_add_figure(&b, &utf8, &e, TEXT_COUNT);
    assert_text(&b, "52.5k (42.7–63.8)");
    e = estimate_of(0, 0, PERIOD, false);
    text_add_figure(&b, &utf8, &e, TEXT_BYTES);
    assert_text(&b, "< 1.84 MiB");
    e = estimate_of(3, 5 * MIB, 1, false);
    text_add_figure(&b, &utf8, &e, TEXT_BYTES);
    assert_text(&b, "15.0 MiB");
    e = estimate_of(0, 0, 1, false);
    text_add_figure(&b, &utf8, &e, TEXT_BYTES);
    assert_text(&b, "0 B");
    e = estimate_of(1, 1000, 64 * MIB, true); /* the upper end needs a unit of its own */
    e.value = 3;
    e.seen = 1;
    text_add_interval(&b, &utf8, &e, TEXT_COUNT);
    assert_non_null(strstr(buf_str(&b), "k"));
    buf_release(&b);
}

static void shares_and_numbers(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    text_add_share(&b, 1, 3);
    buf_addch(&b, '|');
    text_add_share(&b, 1, 300);
    buf_addch(&b, '|');
    text_add_share(&b, 1, 3000);
    buf_addch(&b, '|');
    text_add_share(&b, 0, 3);
    buf_addch(&b, '|');
    text_add_share(&b, 3, 3);
    buf_addch(&b, '|');
    text_add_share(&b, 0, 0);
    text_add_share(&b, 837, 10);
    assert_text(&b, "33 %|0.3 %|< 0.1 %|0 %|100 %|8370 %");
    text_add_words(&b, 1, "free{s} of NULL, which {frees|free} nothing");
    assert_text(&b, "1 free of NULL, which frees nothing");
    text_add_words(&b, 12345, "free{s} of NULL, which {frees|free} nothing");
    assert_text(&b, "12,345 frees of NULL, which free nothing");
    text_add_words(&b, 0, "{thing|things}");
    assert_text(&b, "0 things");
    text_add_words(&b, 2, "with a brace that is {left open");
    assert_text(&b, "2 with a brace that is ");
    text_add_number(&b, 1, "stack");
    text_add_number(&b, 1234567, " stack");
    text_add_number(&b, 999, NULL);
    assert_text(&b, "1 stack1,234,567  stacks999");
    text_add_instant(&b, BEGAN);
    assert_text(&b, "2026-11-21 14:02:11 UTC");
    text_add_moment(&b, BEGAN);
    assert_text(&b, "14:02:11.000");
    static const uint64_t unknown[] = {0, INT64_MAX, (uint64_t)-1000000000};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
        text_add_instant(&b, unknown[i]);
        assert_text(&b, "unknown time");
        text_add_clock(&b, unknown[i]);
        assert_text(&b, "unknown time");
        text_add_moment(&b, unknown[i]);
        assert_text(&b, "unknown time");
    }
    buf_release(&b);
}

/* ---- names ---- */

static void names(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    text_add_name(&b, &utf8, "a\x1b[2Jb\nc\x7f");
    assert_text(&b, "a?[2Jb?c?");
    text_add_name(&b, &utf8,
                  "\xc3\xa9\xff\xc2\x9b\xe2\x80\xae\xef\xbb\xbf\xe2\x81\xa6."); /* é, CSI, bidi, BOM */
    assert_text(&b, "\xc3\xa9?????.");
    text_add_name(&b, &ascii, "caf\xc3\xa9");
    assert_text(&b, "caf?");
    buf_release(&b);
}

static void short_names(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    text_add_short(&b, &utf8, "0123456789", 10);
    assert_text(&b, "0123456789");
    text_add_short(&b, &utf8, "0123456789", 7);
    assert_text(&b, "012…789");
    text_add_short(&b, &ascii, "0123456789", 8);
    assert_text(&b, "012...89");
    text_add_short(&b, &utf8, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 3);
    assert_text(&b, "\xc3\xa9…\xc3\xa9");
    text_add_short(&b, &ascii, "0123456789", 2);
    assert_text(&b, "01");
    assert_int_equal(text_width("\xc3\xa9…x"), 3);
    buf_release(&b);
}

static void paragraphs(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    const struct text_style narrow = {.columns = 16};
    text_paragraph(&out, &narrow, "", 2, "one two three  four a-very-long-single-word end");
    assert_text(&b, "  one two three\n  four\n  a-very-long-single-word\n  end\n");
    text_paragraph(&out, &narrow, "label", 8, "one two three");
    assert_text(&b, "label   one two\n        three\n");
    text_paragraph(&out, &narrow, "", 0, "it took all of 9 s, 12 of them in 3.5 % of it");
    assert_text(&b, "it took all of\n9 s, 12 of them\nin 3.5 % of it\n");
    buf_release(&b);
}

/* ---- sinks ---- */

static void sinks(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    sink_printf(&out, "%d", 42);
    sink_repeat(&out, '-', 3);
    assert_int_equal(sink_finish(&out), 0);
    assert_text(&b, "42---");
    buf_release(&b);
    FILE *f = fopen("/dev/full", "w");
    out = sink_to_file(f);
    sink_text(&out, "x"); /* fits the stream's buffer: only the end can tell */
    assert_int_equal(out.error, 0);
    assert_int_equal(sink_finish(&out), -ENOSPC);
    sink_text(&out, "y");
    assert_int_equal(sink_finish(&out), -ENOSPC);
    fclose(f);
}

/* ---- tables ---- */

static void tables(void **state)
{
    static const struct table_column columns[] = {
        {.name = "pid", .type = TABLE_SIGNED},
        {.name = "live", .unit = TABLE_BYTES, .type = TABLE_ESTIMATE},
        {.name = "rss_anon", .unit = TABLE_BYTES, .type = TABLE_WHOLE},
        {.name = "since", .unit = TABLE_DURATION, .type = TABLE_WHOLE},
        {.name = "cost", .unit = TABLE_PERCENT, .type = TABLE_REAL},
        {.name = "command", .type = TABLE_TEXT},
    };
    (void)state;
    struct table *t = table_new("ps", 1, columns, 6);
    struct estimate some = estimate_of(3, 1000, PERIOD, false), none = estimate_of(0, 0, PERIOD, false);
    table_row(t);
    table_signed(t, 0, 4242);
    table_estimate(t, 1, &some);
    table_whole(t, 2, 30 * MIB);
    table_whole(t, 3, 250 * SECOND);
    table_real(t, 4, 0.02);
    table_text(t, 5, "/usr/bin/server --with=a --very=long --list=of --options");
    table_row(t);
    table_signed(t, 0, 7);
    table_estimate(t, 1, &none);
    table_at_least(t, 3, 3 * SECOND);
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    table_view_text(&out, t, &(struct text_style){.columns = 72, .utf8 = true});
    assert_text(&b, " PID                  LIVE  RSS ANON  SINCE     COST  COMMAND\n"
                    "4242  1.50 MiB (0.31–4.39)    30 MiB  4m10s  < 0.1 %  /usr/bin/…-options\n"
                    "   7            < 1.84 MiB         -  ≥ 3 s        -  -\n");
    table_view_text(&out, t, &(struct text_style){.columns = 0});
    assert_non_null(strstr(buf_str(&b), "  >= 3 s  "));
    buf_reset(&b);
    table_view_text(&out, t, &(struct text_style){.utf8 = true, .exact = true});
    assert_text(&b, " PID                  LIVE      RSS ANON               SINCE     COST  COMMAND\n"
                    "4242  1.50 MiB (0.31–4.39)  31,457,280 B  250,000,000,000 ns  < 0.1 %  "
                    "/usr/bin/server --with=a --very=long --list=of --options\n"
                    "   7            < 1.84 MiB             -  ≥ 3,000,000,000 ns        -  -\n");
    buf_release(&b);
    table_free(t);
}

static void wrapped_tables(void **state)
{
    static const struct table_column columns[] = {
        {.name = "check", .type = TABLE_TEXT},
        {.name = "what_to_do", .type = TABLE_TEXT, .wrap = true},
    };
    (void)state;
    struct table *t = table_new("doctor", 1, columns, 2);
    table_row(t);
    table_text(t, 0, "attach");
    table_text(t, 1, "as root: sysctl kernel.yama.ptrace_scope=0, or attach to children only");
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    table_view_text(&out, t, &(struct text_style){.columns = 48});
    assert_text(&b, "CHECK   WHAT TO DO\n"
                    "attach  as root: sysctl\n"
                    "        kernel.yama.ptrace_scope=0, or attach\n"
                    "        to children only\n");
    table_view_text(&out, t, &(struct text_style){.columns = 0});
    assert_text(&b, "CHECK   WHAT TO DO\n"
                    "attach  as root: sysctl kernel.yama.ptrace_scope=0, or attach to children only\n");
    buf_release(&b);
    table_free(t);
}

/* What names rows is shortened, a path at its beginning; figures never, even where they are a text. */
static void columns_that_give_way(void **state)
{
    static const struct table_column columns[] = {
        {.name = "live", .unit = TABLE_BYTES, .type = TABLE_WHOLE},
        {.name = "alloc/free", .type = TABLE_TEXT, .width = 41},
        {.name = "class", .type = TABLE_TEXT, .hide_if_empty = true, .shrinkable = true, .drop_rank = 1},
        {.name = "function", .type = TABLE_TEXT, .hide_if_empty = true, .shrinkable = true},
        {.name = "place", .type = TABLE_TEXT, .hide_if_empty = true, .shrinkable = true},
        {.name = "module", .type = TABLE_TEXT, .hide_if_empty = true, .shrinkable = true, .drop_rank = 2},
    };
    const char *const all[] = {"new", "std::vector<int, std::allocator<int> >::_M_default_append",
                               "/usr/include/c++/12/bits/vector.tcc:650",
                               "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"};
    (void)state;
    struct table *t = table_new("sites", 1, columns, 6);
    table_row(t);
    table_whole(t, 0, 512);
    table_text(t, 1, "5180110123/5098716456");
    for (uint32_t i = 0; i < 4; i++)
        table_text(t, 2 + i, all[i]);
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    table_view_text(&out, t, &(struct text_style){.columns = 100, .utf8 = true});
    assert_text(&b, " LIVE  ALLOC/FREE             CLASS  FUNCTION                        PLACE\n"
                    "512 B  5180110123/5098716456  new    std::vector<int…default_append  "
                    "…de/c++/12/bits/vector.tcc:650\nno room for MODULE\n");
    table_view_text(&out, t, &(struct text_style){.columns = 50, .utf8 = true, .file = true}); /* COLUMNS */
    assert_text(&b, " LIVE  ALLOC/FREE             FUNCTION   PLACE\n"
                    "512 B  5180110123/5098716456  std:…pend  ….tcc:650\n");
    table_view_text(&out, t, &(struct text_style){.columns = 0, .file = true});
    assert_non_null(strstr(buf_str(&b), "  /usr/lib/x86_64-linux-gnu/libstdc++.so.6\n"));
    buf_reset(&b);
    table_view_text(&out, t, &(struct text_style){.columns = 50, .utf8 = true});
    assert_text(&b, " LIVE  ALLOC/FREE             FUNCTION   PLACE\n"
                    "512 B  5180110123/5098716456  std:…pend  ….tcc:650\nno room for CLASS, MODULE\n");
    t->hidden = 1 << 2 | 1 << 3 | 1 << 4;
    table_view_text(&out, t, &(struct text_style){.columns = 40, .utf8 = true});
    assert_text(&b, " LIVE  ALLOC/FREE             MODULE\n"
                    "512 B  5180110123/5098716456  …dc++.so.6\n");
    table_view_text(&out, t, &(struct text_style){.columns = 0});
    assert_text(&b, " LIVE  ALLOC/FREE             MODULE\n"
                    "512 B  5180110123/5098716456  /usr/lib/x86_64-linux-gnu/libstdc++.so.6\n");
    buf_release(&b);
    table_free(t);
}

static void narrow_tables(void **state)
{
    static const struct table_column columns[] = {
        {.name = "pid", .unit = TABLE_PLAIN, .type = TABLE_WHOLE},
        {.name = "held_long", .unit = TABLE_COUNT, .type = TABLE_WHOLE, .drop_rank = 1},
        {.name = "lost_lately", .unit = TABLE_COUNT, .type = TABLE_WHOLE, .drop_rank = 2},
        {.name = "note", .type = TABLE_TEXT, .wrap = true, .hide_if_empty = true},
    };
    (void)state;
    struct table *t = table_new("ps", 1, columns, 4);
    table_row(t);
    table_whole(t, 0, 4711);
    table_whole(t, 1, 10);
    table_whole(t, 2, 1);
    table_text(t, 3, "the ledger stopped growing: the program entered seccomp");
    table_row(t);
    table_whole(t, 0, 7);
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    table_view_text(&out, t, &(struct text_style){.columns = 44});
    assert_text(&b, " PID  HELD LONG  LOST LATELY\n"
                    "4711         10            1\n"
                    "      the ledger stopped growing: the\n"
                    "      program entered seccomp\n"
                    "   7          -            -\n");
    table_view_text(&out, t, &(struct text_style){.columns = 20});
    assert_text(&b, " PID  HELD LONG\n"
                    "4711         10\n"
                    "      the ledger\n"
                    "      stopped\n"
                    "      growing: the\n"
                    "      program\n"
                    "      entered\n"
                    "      seccomp\n"
                    "   7          -\n"
                    "no room for LOST LATELY\n");
    table_view_text(&out, t, &(struct text_style){.columns = 69});
    assert_text(&b, " PID  HELD LONG  LOST LATELY\n"
                    "4711         10            1\n"
                    "      the ledger stopped growing: the program entered seccomp\n"
                    "   7          -            -\n");
    table_view_text(&out, t, &(struct text_style){.columns = 70});
    assert_text(&b, " PID  HELD LONG  LOST LATELY  NOTE\n"
                    "4711         10            1  the ledger stopped growing: the program\n"
                    "                              entered seccomp\n"
                    "   7          -            -\n");
    buf_release(&b);
    table_free(t);
}

static void tables_with_long_names(void **state)
{
    static const struct table_column columns[] = {
        {.name = "live", .unit = TABLE_BYTES, .type = TABLE_WHOLE},
        {.name = "class", .type = TABLE_TEXT, .hide_if_empty = true},
        {.name = "function", .type = TABLE_TEXT, .hide_if_empty = true},
        {.name = "place", .type = TABLE_TEXT, .hide_if_empty = true},
    };
    (void)state;
    struct table *t = table_new("tags", 1, columns, 4);
    table_row(t);
    table_whole(t, 0, 30 * MIB);
    table_text(t, 1, "new");
    table_text(t, 2, "std::_Rb_tree<int, std::pair<int const, int>, std::less<int> >::_M_insert");
    table_text(t, 3, "/usr/include/c++/12/bits/stl_tree.h:1895");
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    table_view_text(&out, t, &(struct text_style){.columns = 96, .utf8 = true});
    assert_text(
        &b,
        "  LIVE  CLASS  FUNCTION                                 PLACE\n"
        "30 MiB  new    std::_Rb_tree<int, …s<int> >::_M_insert  /usr/include/c++/12/bits/stl_tree.h:1895\n");
    table_view_text(&out, t, &(struct text_style){.columns = 40, .utf8 = true});
    assert_text(&b, "  LIVE  CLASS  FUNCTION                      PLACE\n"
                    "30 MiB  new    std::_Rb_tree<… >::_M_insert  …c++/12/bits/stl_tree.h:1895\n");
    buf_release(&b);
    table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a figure has its interval, unless it is exact, and a bound where nothing was seen", figures),
        TEST("shares, numbers and times are written as people read them", shares_and_numbers),
        TEST("a name from outside cannot steer the terminal", names),
        TEST("a long name is shortened in the middle, between characters", short_names),
        TEST("paragraphs are broken between words, and not before a unit", paragraphs),
        TEST("a sink keeps its first error", sinks),
        TEST("a table lines up, and its last text gives way", tables),
        TEST("a text that is worth it goes on in further lines", wrapped_tables),
        TEST("on a narrow screen it stands below its row, and columns that matter less go", narrow_tables),
        TEST("of long names the widest give way, and keep some columns", tables_with_long_names),
        TEST("names give way where there is no room, figures do not", columns_that_give_way),
    };
    return cmocka_run_group_tests(tests, use_utc, NULL);
}
