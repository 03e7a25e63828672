/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/query: what each construct means, and what each mistake is told.
 */
#include "test_query.h"

TEST(an_empty_query_matches_everything)
{
    YES("", HAS_NOTHING);
    YES(" \t\n", HAS_SIZE(1));
    assert_canonical("  ", "");
}

TEST(a_text_pattern_matches_the_whole_value)
{
    YES("func:malloc", HAS_FUNC("malloc"));
    NO("func:malloc", HAS_FUNC("xmalloc"));
    NO("func:malloc", HAS_FUNC("malloc_usable_size"));
    NO("func:Malloc", HAS_FUNC("malloc"));
    YES("func:*alloc", HAS_FUNC("xcalloc"));
    YES("func:m?lloc", HAS_FUNC("m\303\251lloc"));
    NO("func:net_*", HAS_FUNC("inet_open"));
}

TEST(one_value_of_several_is_enough)
{
    YES("func:c", HAS_FUNC("a", "b", "c"));
    YES("func:a func:c", HAS_FUNC("a", "b", "c"));
    NO("func:d", HAS_FUNC("a", "b", "c"));
    YES("func:x,b", HAS_FUNC("a", "b"));
    YES("!func:d", HAS_FUNC("a", "b"));
    NO("!func:b", HAS_FUNC("a", "b"));
}

TEST(a_path_pattern_may_begin_behind_any_slash)
{
    YES("file:a.c", HAS_FILE("src/a.c"));
    YES("file:a.c", HAS_FILE("a.c"));
    NO("file:a.c", HAS_FILE("src/aa.c"));
    YES("file:src/*.c", HAS_FILE("/build/src/net/a.c"));
    NO("file:src/*.c", HAS_FILE("/build/mysrc/a.c"));
    NO("file:src", HAS_FILE("src/a.c"));
    YES("file:/build/*", HAS_FILE("/build/a.c"));
    NO("file:/a.c", HAS_FILE("/build//a.c"));
}

TEST(a_module_pattern_may_leave_out_so_and_version)
{
    YES("module:libfoo", HAS_MODULE("/usr/lib/libfoo.so.1"));
    YES("module:libfoo.so.1", HAS_MODULE("/usr/lib/libfoo.so.1"));
    YES("module:libc", HAS_MODULE("/lib/libc-2.31.so"));
    YES("module:libc-2.31", HAS_MODULE("/lib/libc-2.31.so"));
    YES("module:lib?", HAS_MODULE("libc.so.6"));
    YES("module:lib/libfoo", HAS_MODULE("/usr/lib/libfoo.so"));
    YES("module:/usr/lib/libfoo", HAS_MODULE("/usr/lib/libfoo.so"));
    YES("module:bash", HAS_MODULE("/bin/bash"));
    YES("module:libx.sorted", HAS_MODULE("libx.sorted.so"));
    NO("module:libfoo", HAS_MODULE("/usr/lib/libfoobar.so.1"));
    NO("module:libfoo", HAS_MODULE("/usr/libfoo/a.so"));
    NO("module:foo", HAS_MODULE("/usr/lib/libfoo.so"));
    NO("module:/libfoo", HAS_MODULE("/usr/lib/libfoo.so"));
    NO("module:prog", HAS_MODULE("/opt/prog-1.2"));
    NO("module:/opt/", HAS_MODULE("/opt/.so"));
    NO("module:/opt/", HAS_MODULE("/opt/-2.so"));
    YES("module:/opt/-2", HAS_MODULE("/opt/-2.so"));
}

TEST(sizes_compare_in_bytes)
{
    NO("size>4k", HAS_SIZE(4096));
    YES("size>4k", HAS_SIZE(4097));
    YES("size>=4K", HAS_SIZE(4096));
    YES("size<1.5MiB", HAS_SIZE(0x180000 - 1));
    NO("size<1.5MiB", HAS_SIZE(0x180000));
    YES("size<=4k", HAS_SIZE(4096));
    YES("size=4096", HAS_SIZE(4096));
    YES("size:4k", HAS_SIZE(4096));
    YES("size > \"1.5 MiB\"", HAS_SIZE(0x180001));
    YES("size<-1k", HAS_SIZE(-1025));
    NO("size<-1k", HAS_SIZE(-1024));
}

TEST(durations_and_plain_numbers_compare_too)
{
    YES("age>5m", HAS_AGE(300000000001));
    NO("age>5m", HAS_AGE(300000000000));
    YES("age<2.5", HAS_AGE(2499999999));
    YES("age:1h30m..2h", HAS_AGE(5400000000000));
    YES("pid=42", HAS_PID(42));
    YES("pid<=9223372036854775807", HAS_PID(INT64_MAX));
    YES("pid<0", HAS_PID(-17));
}

TEST(ranges_include_both_ends_and_may_be_listed)
{
    NO("size:4k..64k", HAS_SIZE(4095));
    YES("size:4k..64k", HAS_SIZE(4096));
    YES("size:4k..64k", HAS_SIZE(65536));
    NO("size:4k..64k", HAS_SIZE(65537));
    YES("pid:1,5..7,9", HAS_PID(6));
    YES("pid:1,5..7,9", HAS_PID(9));
    NO("pid:1,5..7,9", HAS_PID(8));
    YES("pid:-5..-1", HAS_PID(-1));
}

TEST(a_term_on_an_absent_value_is_false_and_its_negation_true)
{
    NO("size>4k", HAS_NOTHING);
    NO("size<=4k", HAS_NOTHING);
    YES("!size>4k", HAS_NOTHING);
    YES("!size>4k !size<=4k", HAS_NOTHING);
    NO("func:*", HAS_NOTHING);
    YES("!func:*", HAS_NOTHING);
    YES("func:*", HAS_FUNC(""));
    YES("!(size>4k func:a)", HAS_NOTHING);
}

TEST(a_value_of_the_wrong_kind_counts_as_absent)
{
    static const struct query_field wrong[N_FIELDS] = {
        {"func", QUERY_SIZE, ""}, {"file", QUERY_SIZE, ""}, {"module", QUERY_SIZE, ""},
        {"size", QUERY_TEXT, ""}, {"age", QUERY_TEXT, ""},  {"pid", QUERY_TEXT, ""},
    };
    struct subject s = {.texts = {[FUNC] = {"a"}}, .has = {true}};
    struct query *q;
    assert_int_equal(query_parse(&q, "func>=0 or size:*", wrong, N_FIELDS, NULL, NULL), 0);
    assert_false(query_match(q, look_up, &s));
    query_free(q);
}

TEST(and_binds_tighter_than_or_and_negation_tightest)
{
    YES("func:a or func:b size>4k", HAS_FUNC("a"));
    NO("(func:a or func:b) size>4k", HAS_FUNC("a"));
    YES("!func:a func:b", HAS_FUNC("b"));
    NO("!(func:a or func:b)", HAS_FUNC("b"));
    YES("! ! func:b", HAS_FUNC("b"));
    YES("!!!func:a", HAS_FUNC("b"));
    YES("(func:a)or(func:b)", HAS_FUNC("b"));
}

TEST(matching_asks_no_more_than_it_needs)
{
    struct subject s = HAS_FUNC("a");
    struct query *q = must_parse("size>1 func:a or func:a or age>1");
    assert_true(query_match(q, look_up, &s));
    assert_int_equal(s.asked, 2);
    query_free(q);
}

TEST(quotes_and_backslashes_take_the_meaning_away)
{
    YES("func:\"operator new\"", HAS_FUNC("operator new"));
    YES("func:\"operator new*\"", HAS_FUNC("operator new[](unsigned long)"));
    YES("func:operator\\ new", HAS_FUNC("operator new"));
    YES("func:operator\\*", HAS_FUNC("operator*"));
    NO("func:operator\\*", HAS_FUNC("operator+"));
    YES("func:\"f(int, char\\*)\"", HAS_FUNC("f(int, char*)"));
    YES("func:\"a\\\"b\\\\c\"", HAS_FUNC("a\"b\\c"));
    YES("func:a\\,b", HAS_FUNC("a,b"));
    YES("func:std::vector<int>::push", HAS_FUNC("std::vector<int>::push"));
    YES("func:\"a b\",!x", HAS_FUNC("!x"));
    YES("func:or", HAS_FUNC("or"));
}

TEST(equal_queries_have_one_canonical_text)
{
    assert_canonical("  func:a   size > 4096 ", "func:a size>4k");
    assert_canonical("size:4k", "size=4k");
    assert_canonical("size:4k..4k", "size=4k");
    assert_canonical("size=0 age=0 pid=0", "size=0 age=0s pid=0");
    assert_canonical("age>=90 age<1h30m age<300", "age>=90s age<90m age<5m");
    assert_canonical("size<-1024 pid:-3..4,5", "size<-1k pid:-3..4,5");
    assert_canonical("((func:a)) (size>1 (age>2 pid=3))", "func:a size>1 age>2s pid=3");
    assert_canonical("(func:a or (func:b or func:c))", "func:a or func:b or func:c");
    assert_canonical("!(func:a)", "!func:a");
    assert_canonical("!(!(func:a func:b) or func:c)", "!(!(func:a func:b) or func:c)");
    assert_canonical("!!(func:a func:b) func:c", "func:a func:b func:c");
    assert_canonical("(func:a or func:b) func:c", "(func:a or func:b) func:c");
    assert_canonical("func:\"abc\",a\\ b,\\x\\*", "func:abc,\"a b\",x\\*");
    assert_canonical("func:a\\\"b", "func:\"a\\\"b\"");
    assert_canonical("file:/a,b module:libc", "file:/a,b module:libc");
}

#define WRITE_TERM   "write FIELD:PATTERN or FIELD>VALUE"
#define WRITE_SIZE   "write for example 512, 4k or 1.5MiB"
#define WRITE_QUOTES "put a pattern with blanks, commas, parentheses or quotes in double quotes"
#define JUST_BLANKS  "leave it out: terms next to each other must all match"
#define MISSING      "missing pattern or value"

static const struct {
    const char *text;
    size_t column;
    const char *what, *hint;
} mistakes[] = {
    {"a fun:b", 1, "invalid term \"a\"", WRITE_TERM},
    {"  xyz:b", 3, "unknown field \"xyz\"", "fields are func, file, module, size, age, pid"},
    {"  fun:b", 3, "unknown field \"fun\"",
     "did you mean \"func\"? fields are func, file, module, size, age, pid"},
    {"func", 1, "invalid term \"func\"", "write func:PATTERN"},
    {"func=a", 5, "a comparison of the text field \"func\"", "write func:PATTERN"},
    {"func: a", 6, MISSING, NULL},
    {"func:a,", 8, MISSING, NULL},
    {"func:\"\"", 6, MISSING, "write FIELD:* for any value, !FIELD:* for none"},
    {"func:a , b", 8, "invalid term \",\"", "write alternatives without blanks: FIELD:THIS,THAT"},
    {"func:f(int)", 7, "\"(\" within a pattern", WRITE_QUOTES},
    {"func:\"a b", 6, "missing closing double quote", NULL},
    {"func:a\\", 7, "a backslash at the end", "write \\\\ for the character itself"},
    {"func:\"a\tb\"", 8, "a tab or line break within a pattern", "write ? instead"},
    {"func:a\033[1m", 7, "a control character", "write ? instead"},
    {"size>4q", 6, "\"4q\" is not a size", WRITE_SIZE},
    {"age>x", 5, "\"x\" is not a duration", "write for example 250ms, 5m or 1h30m"},
    {"pid:1,4k", 7, "\"4k\" is not a whole number", "write for example 42"},
    {"pid=9223372036854775808", 5, "\"9223372036854775808\" is too large", NULL},
    {"pid=99999999999999999999", 5, "\"99999999999999999999\" is too large", NULL},
    {"pid=18446744073709551616", 5, "\"18446744073709551616\" is too large", NULL},
    {"pid:1..", 5, "\"\" is not a whole number", "write for example 42"},
    {"or:x", 1, "missing term", WRITE_TERM},
    {"size>8E", 6, "\"8E\" is too large", NULL},
    {"size:9k..8k", 6, "\"9k..8k\" is empty", "write the smaller end first"},
    {"size:4k..", 6, "\"\" is not a size", WRITE_SIZE},
    {"size>4k,5k", 8, "a second value after a comparison", "write FIELD:THIS,THAT"},
    {"size!=4k", 5, "\"!=\"", "write !FIELD=VALUE"},
    {"size", 1, "invalid term \"size\"", "write size followed by :, =, >, >=, < or <= and a value"},
    {"func:a or", 10, "missing term", WRITE_TERM},
    {"or func:a", 1, "missing term", WRITE_TERM},
    {"func:a and func:b", 8, "invalid term \"and\"", JUST_BLANKS},
    {"func:a && func:b", 8, "invalid term \"&&\"", JUST_BLANKS},
    {"func:a || func:b", 8, "invalid term \"||\"", "write \"or\""},
    {"-func:a", 1, "invalid term \"-func:a\"", "write \"!\" before a term to negate it"},
    {"!", 2, "missing term", WRITE_TERM},
    {"()", 2, "missing term", WRITE_TERM},
    {"(func:a", 1, "\"(\" without \")\"", NULL},
    {"func:a)", 7, "\")\" without \"(\"", NULL},
    {")", 1, "\")\" without \"(\"", NULL},
};

TEST(a_mistake_is_told_with_its_place_and_what_to_write)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
        struct query *q = (struct query *)&mistakes;
        struct error err = {""};
        char expected[sizeof(err.text)];
        size_t column = 0;
        snprintf(expected, sizeof(expected), "query: %s at column %zu%s%s", mistakes[i].what,
                 mistakes[i].column, mistakes[i].hint ? "; " : "", mistakes[i].hint ? mistakes[i].hint : "");
        assert_int_equal(query_parse(&q, mistakes[i].text, fields, N_FIELDS, &err, &column), -EINVAL);
        assert_null(q);
        assert_string_equal(err.text, expected);
        assert_int_equal(column, mistakes[i].column);
        assert_int_equal(query_parse(&q, mistakes[i].text, fields, N_FIELDS, NULL, NULL), -EINVAL);
    }
}

TEST(a_field_that_is_nearly_right_is_suggested)
{
    static const char *const cases[][2] = {
        {"fnuc", "func"}, {"function", "func"}, {"mod", "module"}, {"modul", "module"},  {"siez", "size"},
        {"pids", "pid"},  {"p", NULL},          {"thread", NULL},  {"modalf", "module"}, {"cun", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[64], question[64];
        struct error err = {""};
        struct query *q;
        snprintf(text, sizeof(text), "%s:x", cases[i][0]);
        assert_int_equal(query_parse(&q, text, fields, N_FIELDS, &err, NULL), -EINVAL);
        snprintf(question, sizeof(question), "mean \"%s\"?", cases[i][1] ? cases[i][1] : "");
        if (!cases[i][1] == !!strstr(err.text, "did you mean") ||
            (cases[i][1] && !strstr(err.text, question)))
            fail_msg("%s", err.text);
    }
}

TEST(a_long_list_of_fields_is_cut_within_the_message)
{
    struct query_field many[100];
    char names[100][16];
    struct error err = {""};
    struct query *q;
    for (size_t i = 0; i < 100; i++) {
        snprintf(names[i], sizeof(names[i]), "field-%zu", i);
        many[i] = (struct query_field){names[i], QUERY_TEXT, ""};
    }
    assert_int_equal(query_parse(&q, "zz:x", many, 100, &err, NULL), -EINVAL);
    assert_string_equal(err.text + strlen(err.text) - 5, ", ...");
    assert_int_equal(query_parse(&q, "zz:x", NULL, 0, &err, NULL), -EINVAL);
    assert_string_equal(err.text, "query: unknown field \"zz\" at column 1; there are no fields");
}

TEST(a_message_quotes_long_texts_in_part_and_no_half_characters)
{
    static const char ten[] = "abcdefghij";
    char text[64];
    struct error err = {""};
    struct query *q;
    snprintf(text, sizeof(text), "%s%s%s%s_:x", ten, ten, ten, ten);
    query_parse(&q, text, fields, N_FIELDS, &err, NULL);
    assert_string_equal(err.text,
                        "query: unknown field \"abcdefghijabcdefghijabcdefghijabcdefghij\" at column 1; "
                        "fields are func, file, module, size, age, pid");
    snprintf(text, sizeof(text), "%%%s%s%sabcdefg\342\202\254d", ten, ten, ten);
    query_parse(&q, text, fields, N_FIELDS, &err, NULL);
    assert_string_equal(err.text,
                        "query: invalid term \"%abcdefghijabcdefghijabcdefghijabcdefg\" at column 1; "
                        "write FIELD:PATTERN or FIELD>VALUE");
}

static void assert_refused(char *text, int code, size_t expected_column)
{
    struct query *q;
    struct error err;
    size_t column = 0;
    assert_int_equal(query_parse(&q, text, fields, N_FIELDS, &err, &column), code);
    assert_int_equal(column, expected_column);
    free(text);
}

TEST(too_long_and_too_deep_queries_are_refused)
{
    assert_refused(repeat("(", 65), -E2BIG, 65);
    assert_refused(repeat("!(", 30000), -E2BIG, 130);
    assert_refused(repeat("pid=1 ", 11000), -E2BIG, QUERY_BYTES_MAX + 1);
    assert_refused(repeat("size>1.3T ", 6000), -E2BIG, 1);
    assert_refused(repeat("!", QUERY_BYTES_MAX), -EINVAL, QUERY_BYTES_MAX + 1);

    char *open = repeat("(!(", 32), *shut = repeat(" or pid=1) size>1)", 32);
    struct buf deep = BUF_INIT;
    buf_printf(&deep, "%sfunc:a%s", open, shut);
    char *wide = repeat("pid=1 ", 10922);
    struct query *q = must_parse(buf_str(&deep)), *w = must_parse(wide);
    assert_true(query_match(w, look_up, &HAS_PID(1)));
    query_free(q);
    query_free(w);
    buf_release(&deep);
    free(open);
    free(shut);
    free(wide);
}

TEST(a_caller_can_ask_which_fields_are_used)
{
    struct query *q = must_parse("func:a !(size>4k or !age>1)");
    for (size_t i = 0; i < N_FIELDS; i++)
        assert_int_equal(query_uses(q, i), i == FUNC || i == SIZE || i == AGE);
    query_free(q);
}

#ifndef QUERY_MAN_PAGE
#define QUERY_MAN_PAGE "man/allium-query.7.scd"
#endif

TEST(every_example_in_the_man_page_is_a_query)
{
    static const struct query_field documented[] = {
        {"func", QUERY_TEXT, ""},    {"file", QUERY_PATH, ""},  {"module", QUERY_MODULE, ""},
        {"comm", QUERY_TEXT, ""},    {"size", QUERY_SIZE, ""},  {"age", QUERY_DURATION, ""},
        {"count", QUERY_NUMBER, ""}, {"pid", QUERY_NUMBER, ""},
    };
    static const char mark[] = "--where '";
    char line[512];
    size_t examples = 0;
    FILE *f = fopen(QUERY_MAN_PAGE, "r");
    if (!f)
        skip();
    while (fgets(line, sizeof(line), f)) {
        char *text = strstr(line, mark), *end = text ? strchr(text + strlen(mark), '\'') : NULL;
        struct error err = {""};
        struct query *q;
        if (!end)
            continue;
        *end = '\0';
        if (query_parse(&q, text + strlen(mark), documented, sizeof(documented) / sizeof(*documented), &err,
                        NULL))
            fail_msg("%s: %s", text + strlen(mark), err.text);
        query_free(q);
        examples++;
    }
    fclose(f);
    assert_true(examples >= 8);
}

static bool in_ranges(const struct query_range *r, size_t n, int64_t value)
{
    for (size_t i = 0; i < n; i++)
        if (r[i].low <= value && value <= r[i].high)
            return true;
    return false;
}

/* `exact`: the query excludes nothing else. */
static void check_ranges(const char *text, bool exact, size_t wanted)
{
    struct query *q = must_parse(text);
    struct query_range r[QUERY_RANGES_MAX];
    const size_t n = query_ranges(q, SIZE, r);
    assert_int_equal(n, wanted);
    static const int64_t far[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX};
    for (int64_t value = -30; value < 34; value++) {
        const int64_t at = value < 30 ? value : far[value - 30];
        struct subject s = HAS_SIZE(at);
        const bool fits = query_match(q, look_up, &s), in = in_ranges(r, n, at);
        assert_true(exact ? fits == in : !fits || in);
    }
    for (size_t i = 1; i < n; i++)
        assert_true(r[i - 1].high < r[i].low);
    query_free(q);
}

TEST(ranges_are_the_values_that_the_terms_allow)
{
    check_ranges("", true, 1);
    check_ranges("size>4", true, 1);
    check_ranges("size<=-4", true, 1);
    check_ranges("size:4..9,1,20,2..3,5..12", true, 2);
    check_ranges("!size:4..9,12", true, 3);
    check_ranges("size>3 !size=7 size<12", true, 2);
    check_ranges("size<3 size>5", true, 0);
    check_ranges("size:1,3,5,7,9,11,13,15", true, 8);
    check_ranges("size:1,3,5,7,9,11,13,15,17", false, 1); /* too many: the term is left out */
    check_ranges("size:1,3,5,7,9,11,13,15,17 size<10", false, 1);
    check_ranges("size>3 func:a pid=5", false, 1);
    check_ranges("size>3 or pid=5", false, 1);
    check_ranges("!(size>3 pid=5)", false, 1);
    check_ranges("(size>3 or size<1) size<10", false, 1);
    check_ranges("pid=5", false, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_query_matches_everything),
        cmocka_unit_test(a_text_pattern_matches_the_whole_value),
        cmocka_unit_test(one_value_of_several_is_enough),
        cmocka_unit_test(a_path_pattern_may_begin_behind_any_slash),
        cmocka_unit_test(a_module_pattern_may_leave_out_so_and_version),
        cmocka_unit_test(sizes_compare_in_bytes),
        cmocka_unit_test(durations_and_plain_numbers_compare_too),
        cmocka_unit_test(ranges_include_both_ends_and_may_be_listed),
        cmocka_unit_test(a_term_on_an_absent_value_is_false_and_its_negation_true),
        cmocka_unit_test(a_value_of_the_wrong_kind_counts_as_absent),
        cmocka_unit_test(and_binds_tighter_than_or_and_negation_tightest),
        cmocka_unit_test(matching_asks_no_more_than_it_needs),
        cmocka_unit_test(quotes_and_backslashes_take_the_meaning_away),
        cmocka_unit_test(equal_queries_have_one_canonical_text),
        cmocka_unit_test(a_mistake_is_told_with_its_place_and_what_to_write),
        cmocka_unit_test(a_field_that_is_nearly_right_is_suggested),
        cmocka_unit_test(a_long_list_of_fields_is_cut_within_the_message),
        cmocka_unit_test(a_message_quotes_long_texts_in_part_and_no_half_characters),
        cmocka_unit_test(too_long_and_too_deep_queries_are_refused),
        cmocka_unit_test(a_caller_can_ask_which_fields_are_used),
        cmocka_unit_test(ranges_are_the_values_that_the_terms_allow),
        cmocka_unit_test(every_example_in_the_man_page_is_a_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
