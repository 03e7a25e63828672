/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accounts of the kernel: collect/accounts/allocinfo, model/accounts/allocinfo_table,
 * view/formats/allocinfo_text.
 */
#include "test_kernel.h"

#include "collect/accounts/allocinfo.h"
#include "model/accounts/allocinfo_table.h"
#include "view/formats/allocinfo_text.h"

#include <errno.h>
#include <inttypes.h>

#define HEAD_1 "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n"
#define HEAD_2 "allocinfo - version: 2.0\n#     <size>  <calls> <tag info>\n"

struct fixture {
    struct alloc_texts texts;
    struct accounts info;
    struct error e;
};

static void release(struct fixture *f)
{
    accounts_release(&f->info);
    alloc_texts_release(&f->texts);
}

static struct fixture parse_bytes(const char *text, size_t len)
{
    struct fixture f = {.e = {""}};
    assert_int_equal(allocinfo_parse(&f.info, &f.texts, text, len, &f.e), 0);
    return f;
}

static struct fixture parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

/* "4096 1 mm/slub.c:12 [m] alloc no" of the site. */
static void assert_site(const struct fixture *f, size_t i, const char *words)
{
    char text[512];
    assert_in_range(i, 0, f->info.rows.len - 1);
    const struct account_row *s = &f->info.rows.at[i];
    const struct account_sum *sum = &s->of[ACCOUNT_AFTER];
    const char *module = alloc_texts_get(&f->texts, s->key.module);
    snprintf(text, sizeof(text), "%" PRIi64 " %" PRIu64 " %s:%" PRIu32 "%s%s%s %s%s",
             allocinfo_bytes(s, ACCOUNT_AFTER), sum->of[ACCOUNT_ALLOCATED_CALLS],
             alloc_texts_get(&f->texts, s->key.file), s->key.line, module ? " [" : "", module ? module : "",
             module ? "]" : "", alloc_texts_get(&f->texts, s->key.function), sum->inexact ? " no" : "");
    assert_string_equal(text, words);
}

static void rows_are_read(void **state)
{
    (void)state;
    struct fixture f =
        parse(HEAD_1 "           0        0 init/main.c:1316 func:do_initcalls \n"
                     "    12345678     1234 mm/slub.c:2012 func:__alloc_pages_noprof\n"
                     "-9223372036854775808 18446744073709551615 drivers/foo.c:12 [mod] func:x  \n");
    assert_int_equal(f.info.text.version, 1);
    assert_int_equal(f.info.text.minor, 0);
    assert_int_equal(f.info.rows.len, 3);
    assert_int_equal(f.info.text.bad_lines, 0);
    assert_false(f.info.text.cut);
    assert_site(&f, 0, "0 0 init/main.c:1316 do_initcalls");
    assert_site(&f, 1, "12345678 1234 mm/slub.c:2012 __alloc_pages_noprof");
    assert_site(&f, 2, "-9223372036854775808 18446744073709551615 drivers/foo.c:12 [mod] x");
    release(&f);
}

static void marks_of_version_2_are_read(void **state)
{
    (void)state;
    struct fixture f = parse(HEAD_2 "           8        1 a.c:1 func:f accurate:no \n"
                                    "           8        1 a.c:2 [m] func:g accurate:no\n"
                                    "           8        1 a.c:3 func:h \n"
                                    "           8        1 a.c:4 func:accurate:no \n");
    assert_int_equal(f.info.text.version, 2);
    assert_int_equal(f.info.text.bad_lines, 0);
    assert_site(&f, 0, "8 1 a.c:1 f no");
    assert_site(&f, 1, "8 1 a.c:2 [m] g no");
    assert_site(&f, 2, "8 1 a.c:3 h");
    assert_site(&f, 3, "8 1 a.c:4 accurate:no");
    release(&f);
}

static void names_may_hold_blanks_and_colons(void **state)
{
    (void)state;
    struct fixture f = parse(HEAD_2 "1 1 /home/a b/c:d.c:7 func:operator new(unsigned long) \r\n"
                                    "\r\n"
                                    "1 1 a [b].c:7 [m] func:n::f func:g accurate:no \r\n");
    assert_int_equal(f.info.text.bad_lines, 0);
    assert_site(&f, 0, "1 1 /home/a b/c:d.c:7 operator new(unsigned long)");
    assert_site(&f, 1, "1 1 a [b].c:7 [m] n::f func:g no");
    release(&f);
}

static void bad_lines_are_counted_with_their_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *line, *why;
    } cases[] = {
        {"x", "invalid size, not a 64-bit number"},
        {"12", "invalid size, not a 64-bit number"},
        {"9223372036854775808 1 a.c:1 func:f", "invalid size, not a 64-bit number"},
        {"- 1 a.c:1 func:f", "invalid size, not a 64-bit number"},
        {"0x10 1 a.c:1 func:f", "invalid size, not a 64-bit number"},
        {"1 -1 a.c:1 func:f", "invalid number of calls, not a 64-bit number"},
        {"1 18446744073709551616 a.c:1 func:f", "invalid number of calls, not a 64-bit number"},
        {"1 1", "invalid number of calls, not a 64-bit number"},
        {"1 1 a.c:1", "no func:"},
        {"1 1 a.c:1 fun", "no func:"},
        {"1 1 a.c:1 func:", "empty function name"},
        {"1 1 a.c:1 func: accurate:no", "empty function name"},
        {"1 1 a.c func:f", "no file and line"},
        {"1 1 :1 func:f", "no file and line"},
        {"1 1 a.c: func:f", "invalid line number"},
        {"1 1 a.c:1x func:f", "invalid line number"},
        {"1 1 a.c:4294967296 func:f", "invalid line number"},
        {"1 1 a.c:1 [] func:f", "malformed module"},
        {"1 1 a.c:1[m] func:f", "malformed module"},
        {"1 1 m] func:f", "malformed module"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[512];
        snprintf(text, sizeof(text), HEAD_1 "1 1 a.c:1 func:f\n%s\n2 2 a.c:2 func:g\n", cases[i].line);
        struct fixture f = parse(text);
        assert_int_equal(f.info.rows.len, 2);
        assert_int_equal(f.info.text.bad_lines, 1);
        assert_int_equal(f.info.text.bad[0].line, 4);
        assert_string_equal(f.info.text.bad[0].why, cases[i].why);
        release(&f);
    }
}

static void bytes_of_0_and_endless_lines_are_bad(void **state)
{
    (void)state;
    static const char zero[] = HEAD_1 "1 1 a.c:1 func:f\0g\n\0\n2 2 a.c:2 func:g \n";
    struct fixture f = parse_bytes(zero, sizeof(zero) - 1);
    assert_int_equal(f.info.rows.len, 1);
    assert_int_equal(f.info.text.bad_lines, 2);
    assert_string_equal(f.info.text.bad[0].why, "contains a NUL byte");
    release(&f);
    struct buf text = BUF_INIT;
    for (int more = 0; more < 2; more++) {
        buf_reset(&text);
        buf_addstr(&text, HEAD_1 "1 1 a.c:1 func:");
        for (int i = 0; i < ALLOCINFO_LINE_BYTES - 15 + more; i++)
            buf_addch(&text, 'x');
        buf_addch(&text, '\n');
        f = parse(text.data);
        assert_int_equal(f.info.rows.len, !more);
        assert_int_equal(f.info.text.bad_lines, more);
        release(&f);
    }
    for (int i = 0; i < 20; i++)
        buf_addstr(&text, "bad\n");
    f = parse(text.data);
    assert_int_equal(f.info.text.bad_lines, 21);
    assert_int_equal(f.info.text.bad[ACCOUNT_BAD_LINES - 1].line, 2 + ACCOUNT_BAD_LINES);
    release(&f);
    buf_release(&text);
}

static void what_is_cut_off_is_told(void **state)
{
    (void)state;
    static const char whole[] = HEAD_1 "4096 1 mm/slub.c:2012 [m] func:f \n";
    for (size_t len = strlen("allocinfo - version: 1.0"); len <= strlen(whole); len++) {
        struct fixture f = parse_bytes(whole, len);
        bool at_end = len == strlen("allocinfo - version: 1.0") || whole[len - 1] == '\n';
        bool has_row = len > strlen(whole) - 3; /* from its function's one letter on */
        bool has_part = len > strlen(HEAD_1) && !has_row;
        assert_int_equal(f.info.rows.len, has_row);
        assert_int_equal(f.info.text.bad_lines, has_part);
        assert_int_equal(f.info.text.cut, !at_end || len == strlen("allocinfo - version: 1.0"));
        release(&f);
    }
}

static void what_is_none_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "does not begin"},
        {"slabinfo - version: 2.1\n", "does not begin"},
        {"allocinfo - version: ", "does not begin"}, /* its blank is at the end of the line */
        {"allocinfo - version: 3.0\n", "version 1 or 2"},
        {"allocinfo - version: 0.1\n", "version 1 or 2"},
        {"allocinfo - version: 2\n", "version 1 or 2"},
        {"allocinfo - version: 2.0a\n", "version 1 or 2"},
        {"\x1f\x8b\x08 rest", "compressed"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fixture f = {.e = {""}};
        assert_int_equal(allocinfo_parse(&f.info, &f.texts, cases[i].text, strlen(cases[i].text), &f.e),
                         -EPROTO);
        assert_non_null(strstr(f.e.text, cases[i].why));
        release(&f);
    }
}

/* ---- sums ---- */

static struct account_rows rows_of(const struct fixture *f)
{
    struct account_rows rows = {0};
    account_rows_join(&rows, NULL, &f->info, ACCOUNT_PART_FUNCTION);
    return rows;
}

static int64_t bytes_of(const struct account_rows *rows)
{
    struct account_sum total = account_rows_total(rows, ACCOUNT_AFTER);
    return account_live_bytes(&total);
}

static void a_site_that_comes_again_is_one_row(void **state)
{
    (void)state;
    struct fixture f = parse(HEAD_2 "8 1 a.h:1 func:f\n16 2 a.h:1 func:f accurate:no\n4 1 a.h:1 [m] func:f\n"
                                    "4 1 a.h:2 func:f\n4 1 a.h:1 func:g\n");
    struct account_rows rows = rows_of(&f);
    assert_int_equal(rows.len, 4);
    assert_int_equal(allocinfo_bytes(&rows.at[0], ACCOUNT_AFTER), 24);
    assert_int_equal(rows.at[0].of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS], 3);
    assert_int_equal(rows.at[0].of[ACCOUNT_AFTER].places, 1);
    assert_int_equal(rows.at[0].of[ACCOUNT_AFTER].inexact, 1);
    vec_release(&rows);
    release(&f);
}

static void groups_have_the_sums_of_their_sites(void **state)
{
    (void)state;
    static const struct {
        enum account_group group;
        size_t rows;
    } by[] = {{ACCOUNT_BY_FILE, 4},
              {ACCOUNT_BY_DIRECTORY, 4},
              {ACCOUNT_BY_MODULE, 2},
              {ACCOUNT_BY_FUNCTION, 2},
              {ACCOUNT_BY_MODULE_FUNCTION, 3}};
    struct fixture f = parse(HEAD_2 "1 1 a/b/c.c:1 func:f\n2 1 a/b/c.c:2 func:f\n4 1 a/d.c:1 [m] func:f\n"
                                    "8 1 e.c:1 func:g\n-16 1 /e.c:1 func:g\n32 1 /e.c:2 func:g\n");
    struct account_rows sites = rows_of(&f);
    assert_int_equal(sites.len, 6);
    for (size_t g = 0; g < sizeof(by) / sizeof(*by); g++) {
        struct account_rows rows = {0};
        account_rows_group(&rows, &sites, by[g].group, &f.texts);
        assert_int_equal(rows.len, by[g].rows);
        struct account_sum total = account_rows_total(&rows, ACCOUNT_AFTER);
        assert_int_equal(account_live_bytes(&total), 31);
        assert_int_equal(total.of[ACCOUNT_ALLOCATED_CALLS], 6);
        assert_int_equal(total.places, 6);
        if (by[g].group == ACCOUNT_BY_DIRECTORY) {
            static const char *const names[] = {"a/b", "a", ".", "/"};
            for (size_t i = 0; i < rows.len; i++)
                assert_string_equal(alloc_texts_get(&f.texts, rows.at[i].key.file), names[i]);
        }
        vec_release(&rows);
    }
    vec_release(&sites);
    release(&f);
}

/*
 * Each of the kernel's counters has 64 bits, and so have their sums and differences: they wrap as the kernel's
 * do.
 */
static void changes_are_signed(void **state)
{
    (void)state;
    struct account_row row = {
        .of = {{.of = {[ACCOUNT_ALLOCATED_BYTES] = 100, [ACCOUNT_ALLOCATED_CALLS] = 7}},
               {.of = {[ACCOUNT_ALLOCATED_BYTES] = (uint64_t)-28, [ACCOUNT_ALLOCATED_CALLS] = 4}}}};
    assert_int_equal(allocinfo_bytes(&row, ACCOUNT_AFTER), -28);
    assert_int_equal(allocinfo_bytes_change(&row), -128);
    assert_int_equal(allocinfo_calls_change(&row), -3);
}

static void queries_choose_sites(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        int64_t bytes; /* each site has a bit */
    } cases[] = {
        {"", 15},          {"func:f", 5},
        {"file:c.c", 3},   {"dir:a", 7},
        {"dir:b", 3},      {"dir:a/b", 3},
        {"dir:.", 8},      {"module:*", 4},
        {"!module:*", 11}, {"size>=4", 12},
        {"calls=3", 8},    {"accurate:no", 2},
        {"line=1", 13},    {"average>1 file:*", 14},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fixture f = parse(HEAD_2 "1 1 a/b/c.c:1 func:f\n2 1 a/b/c.c:2 func:g accurate:no\n"
                                        "4 1 a/d.c:1 [m] func:f\n8 3 e.c:1 func:g\n");
        struct account_rows rows = rows_of(&f);
        struct query *q;
        assert_int_equal(account_query_parse_kernel(&q, cases[i].query, &f.e), 0);
        account_rows_keep_kernel(&rows, q, &f.texts);
        if (bytes_of(&rows) != cases[i].bytes)
            fail_msg("%s: %" PRIi64, cases[i].query, bytes_of(&rows));
        query_free(q);
        vec_release(&rows);
        release(&f);
    }
}

static void rows_come_in_order(void **state)
{
    (void)state;
    static const struct {
        enum allocinfo_column sort;
        enum table_order order;
        const char *functions;
    } cases[] = {
        {ALLOCINFO_SIZE, TABLE_USUAL, "cabd"},     {ALLOCINFO_SIZE, TABLE_LEAST_FIRST, "dbac"},
        {ALLOCINFO_CALLS, TABLE_USUAL, "bacd"},    {ALLOCINFO_AVERAGE, TABLE_USUAL, "cabd"},
        {ALLOCINFO_FUNCTION, TABLE_USUAL, "abcd"}, {ALLOCINFO_FUNCTION, TABLE_MOST_FIRST, "dcba"},
        {ALLOCINFO_MODULE, TABLE_USUAL, "dabc"},   {ALLOCINFO_FILE, TABLE_USUAL, "dbac"},
    };
    struct fixture f =
        parse(HEAD_2 "4 2 x.c:9 func:a\n2 3 x.c:5 func:b\n8 1 y.c:1 func:c\n-1 0 w.c:1 [m] func:d\n");
    struct account_rows rows = rows_of(&f);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct account_shape shape = {.column = cases[i].sort, .order = cases[i].order, .seconds = 1};
        struct table *t = allocinfo_table_new(&rows, &f.texts, &shape);
        struct buf functions = BUF_INIT;
        for (uint32_t row = 0; row < table_rows(t); row++)
            buf_addstr(&functions, table_at(t, row, ALLOCINFO_FUNCTION)->text);
        assert_string_equal(buf_str(&functions), cases[i].functions);
        buf_release(&functions);
        table_free(t);
        shape.top = 1;
        t = allocinfo_table_new(&rows, &f.texts, &shape);
        assert_int_equal(table_rows(t), 1);
        table_free(t);
    }
    vec_release(&rows);
    release(&f);
}

/* ---- writing ---- */

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    static const struct allocinfo_row rows[] = {
        {4096, 1, "mm/slub.c", 2012, NULL, "alloc_slab_page", true},
        {INT64_MIN, UINT64_MAX, "a b.c", UINT32_MAX, "m", "operator new(unsigned long)", false},
        {1, 2, NULL, 0, "", "", true},
        {1, 2, "x func:y.c", 1, "[]", "line\nbreak\x1b", true},
        {1, 2, "x ", 1, " ", "f ", false},
    };
    static const char *const read[] = {
        "4096 1 mm/slub.c:2012 alloc_slab_page",
        "-9223372036854775808 18446744073709551615 a b.c:4294967295 [m] operator new(unsigned long) no",
        "1 2 ?:0 [?] ?",
        "1 2 x?func:y.c:1 [?]] line?break?",
        "1 2 x?:1 [?] f? no",
    };
    struct buf text = BUF_INIT;
    struct sink out = sink_to_buf(&text);
    allocinfo_write_head(&out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        allocinfo_write_row(&out, &rows[i]);
    assert_memory_equal(text.data + strlen(HEAD_2),
                        "        4096        1 mm/slub.c:2012 func:alloc_slab_page \n", 59);
    struct fixture f = parse(text.data);
    assert_int_equal(f.info.text.bad_lines, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_site(&f, i, read[i]);
    release(&f);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("rows of version 1.0 are read", rows_are_read),
        TEST("marks of version 2.0 are read", marks_of_version_2_are_read),
        TEST("names may hold blanks and colons, and lines end as in DOS", names_may_hold_blanks_and_colons),
        TEST("lines that are no rows are counted, with number and reason",
             bad_lines_are_counted_with_their_numbers),
        TEST("bytes of 0 and endless lines are no rows", bytes_of_0_and_endless_lines_are_bad),
        TEST("a file that is cut off anywhere gives its whole rows", what_is_cut_off_is_told),
        TEST("what is no allocinfo is refused", what_is_none_is_refused),
        TEST("a site that comes again is one row", a_site_that_comes_again_is_one_row),
        TEST("groups have the sums of their sites", groups_have_the_sums_of_their_sites),
        TEST("sums end where numbers end", changes_are_signed),
        TEST("queries choose sites", queries_choose_sites),
        TEST("rows come in order", rows_come_in_order),
        TEST("what is written is read back", what_is_written_is_read_back),
    };
    return cmocka_run_group_tests_name("allocinfo", tests, NULL, NULL);
}
