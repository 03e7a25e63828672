/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/query on random input from fixed seeds: the canonical text reads back, and matching agrees with an evaluation
 * made while the query was written down.
 */
#include "test_query.h"

/* A generator of its own, so that the cases are the same everywhere. */
static uint32_t random_below(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % n;
}

enum { STAR = -1, ONE = -2 };
static const char *const letters[] = {"a", "b", "\303\251", "\342\202\254", "*", "?", "\\"};
#define N_LETTERS (sizeof(letters) / sizeof(*letters))

/* The definition, tried in every way: on characters, not bytes. */
static bool glob_by_force(const int *p, size_t p_len, const int *t, size_t t_len)
{
    if (!p_len)
        return !t_len;
    if (*p == STAR)
        return glob_by_force(p + 1, p_len - 1, t, t_len) ||
               (t_len && glob_by_force(p, p_len, t + 1, t_len - 1));
    return t_len && (*p == ONE || *p == *t) && glob_by_force(p + 1, p_len - 1, t + 1, t_len - 1);
}

TEST(random_globs_agree_with_brute_force)
{
    uint64_t seed = 1;
    size_t hits = 0;
    for (size_t round = 0; round < 300000; round++) {
        int p[8], t[10];
        size_t p_len = random_below(&seed, 9), t_len = random_below(&seed, 11);
        uint32_t few = 1 + random_below(&seed, N_LETTERS);
        struct buf pattern = BUF_INIT, text = BUF_INIT;
        buf_addstr(&pattern, "");
        buf_addstr(&text, "");
        for (size_t i = 0; i < p_len; i++) {
            p[i] = (int)random_below(&seed, few + 4) - 4;
            p[i] = p[i] >= 0 ? p[i] : p[i] >= -2 ? STAR : p[i] == -3 ? ONE : 0;
            if (p[i] >= 4)
                buf_addch(&pattern, '\\');
            buf_addstr(&pattern, p[i] == STAR ? "*" : p[i] == ONE ? "?" : letters[p[i]]);
        }
        for (size_t i = 0; i < t_len; i++) {
            t[i] = (int)random_below(&seed, few);
            buf_addstr(&text, letters[t[i]]);
        }
        bool expected = glob_by_force(p, p_len, t, t_len);
        if (pattern_glob(buf_str(&pattern), buf_str(&text), text.len) != expected)
            fail_msg("\"%s\" on \"%s\": should be %d", buf_str(&pattern), buf_str(&text), expected);
        hits += expected;
        buf_release(&pattern);
        buf_release(&text);
    }
    assert_in_range(hits, 30000, 270000);
}

TEST(a_glob_made_to_explode_does_not)
{
    char *pattern = repeat("*a?", 1000), *text = repeat("a", 20000);
    pattern[strlen(pattern) - 1] = 'b';
    char *tail = repeat("\200", 100000);
    assert_false(pattern_glob(pattern, text, 20000));
    assert_false(pattern_glob("*?b", tail, 100000));
    free(pattern);
    free(text);
    free(tail);
}

#define N_SUBJECTS 32

struct world {
    uint64_t seed;
    struct subject subjects[N_SUBJECTS];
    struct buf text; /* the query as it is being written */
};

static void make_subjects(struct world *w)
{
    static const char *const funcs[] = {NULL, "a", "ab", "a b", "f(x)", "b"};
    static const int64_t units[N_NUMBERS] = {512, 500000000, 1};
    for (struct subject *s = w->subjects; s < w->subjects + N_SUBJECTS; s++) {
        for (size_t i = 0; i < VALUES_MAX; i++)
            s->texts[FUNC][i] = funcs[random_below(&w->seed, 6)];
        for (size_t i = 0; i < N_NUMBERS; i++) {
            s->has[i] = random_below(&w->seed, 4);
            s->numbers[i] = units[i] * ((int64_t)random_below(&w->seed, 6) - 2);
        }
    }
}

static void write_blanks(struct world *w, uint32_t least)
{
    for (uint32_t n = least + random_below(&w->seed, 2) * random_below(&w->seed, 3); n; n--)
        buf_addch(&w->text, random_below(&w->seed, 8) ? ' ' : '\n');
}

/* Writes a func: term; returns for which subjects (a bit each) it holds. */
static uint32_t write_func_term(struct world *w)
{
    static const char *const patterns[][2] = {{"a", "a"},       {"\"a\"", "a"},       {"\"a b\"", "a b"},
                                              {"a\\ b", "a b"}, {"\"f(x)\"", "f(x)"}, {"f\\(x\\)", "f(x)"},
                                              {"\\b", "b"},     {"none", "none"}};
    uint32_t mask = 0;
    for (uint32_t n = 1 + random_below(&w->seed, 3), k = 0; k < n; k++) {
        uint32_t which = random_below(&w->seed, 8);
        buf_printf(&w->text, "%s%s", k ? "," : "func:", patterns[which][0]);
        for (size_t i = 0; i < N_SUBJECTS; i++)
            for (size_t f = 0; f < VALUES_MAX; f++) {
                const char *func = w->subjects[i].texts[FUNC][f];
                mask |= (uint32_t)(func && !strcmp(func, patterns[which][1])) << i;
            }
    }
    return mask;
}

static bool compare(const char *op, int64_t value, int64_t low, int64_t high)
{
    bool equal_counts = strcmp(op, ">") && strcmp(op, "<");
    if (value == low)
        return equal_counts;
    return *op == '>' ? value > low : *op == '<' ? value < low : value > low && value <= high;
}

static uint32_t write_number_term(struct world *w)
{
    static const struct {
        const char *spelling;
        int64_t value;
    } values[N_NUMBERS][4] = {{{"0", 0}, {"1k", 1024}, {"0.5KiB", 512}, {"-512", -512}},
                              {{"0ms", 0}, {"1", 1000000000}, {"0.5s", 500000000}, {"1500ms", 1500000000}},
                              {{"-1", -1}, {"0", 0}, {"01", 1}, {"2", 2}}};
    static const char *const high_spelling[N_NUMBERS] = {"..1k", "..1s", "..2"};
    static const int64_t highs[N_NUMBERS] = {1024, 1000000000, 2};
    static const char *const ops[] = {">", ">=", "<", "<=", "=", ":"};
    uint32_t kind = random_below(&w->seed, N_NUMBERS), mask = 0;
    uint32_t which = random_below(&w->seed, 4);
    const char *op = ops[random_below(&w->seed, 6)];
    int64_t low = values[kind][which].value;
    bool range = *op == ':' && low < highs[kind] && random_below(&w->seed, 2);
    int64_t high = range ? highs[kind] : low;
    buf_addstr(&w->text, fields[SIZE + kind].name);
    if (*op != ':')
        write_blanks(w, 0);
    buf_printf(&w->text, "%s%s%s", op, values[kind][which].spelling, range ? high_spelling[kind] : "");
    for (size_t i = 0; i < N_SUBJECTS; i++) {
        const struct subject *s = &w->subjects[i];
        mask |= (uint32_t)(s->has[kind] && compare(op, s->numbers[kind], low, high)) << i;
    }
    return mask;
}

static uint32_t write_either(struct world *w, uint32_t depth);

static uint32_t write_item(struct world *w, uint32_t depth)
{
    uint32_t flip = 0, mask;
    write_blanks(w, 0);
    for (; !random_below(&w->seed, 3); flip = ~flip) {
        buf_addch(&w->text, '!');
        write_blanks(w, 0);
    }
    if (depth && random_below(&w->seed, 2)) {
        buf_addch(&w->text, '(');
        mask = write_either(w, depth - 1);
        write_blanks(w, 0);
        buf_addch(&w->text, ')');
    } else {
        mask = random_below(&w->seed, 2) ? write_func_term(w) : write_number_term(w);
    }
    return mask ^ flip;
}

static uint32_t write_either(struct world *w, uint32_t depth)
{
    uint32_t any = 0;
    for (uint32_t n = 1 + random_below(&w->seed, 3); n; n--) {
        uint32_t all = write_item(w, depth);
        for (uint32_t m = random_below(&w->seed, 3); m; m--) {
            write_blanks(w, 1);
            all &= write_item(w, depth);
        }
        any |= all;
        if (n > 1) {
            write_blanks(w, 1);
            buf_addstr(&w->text, "or ");
        }
    }
    return any;
}

static uint32_t match_all(struct world *w, const struct query *q)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < N_SUBJECTS; i++)
        mask |= (uint32_t)query_match(q, look_up, &w->subjects[i]) << i;
    return mask;
}

TEST(random_queries_mean_what_was_written_and_print_back)
{
    struct world w = {.seed = 2};
    size_t mixed = 0;
    for (size_t round = 0; round < 20000; round++) {
        make_subjects(&w);
        buf_reset(&w.text);
        uint32_t expected = write_either(&w, 3);
        struct query *q = must_parse(buf_str(&w.text)), *again = must_parse(query_text(q));
        if (match_all(&w, q) != expected || match_all(&w, again) != expected)
            fail_msg("wrong: %s", buf_str(&w.text));
        assert_string_equal(query_text(again), query_text(q));
        mixed += expected && ~expected;
        query_free(q);
        query_free(again);
    }
    assert_true(mixed > 10000);
    buf_release(&w.text);
}

/* What a process knows that judges for itself: of functions one or none, or not whether there is one. */
static struct clause_value value_of(void *arg, enum clause_field field)
{
    const struct subject *s = arg;
    assert_int_equal(field, CLAUSE_FUNC);
    return (struct clause_value){s ? s->texts[FUNC][0] : NULL, s != NULL};
}

static void check_clause(struct world *w, const struct query *q, uint32_t expected)
{
    for (size_t i = 0; i < N_SUBJECTS; i++) {
        int ways[N_FIELDS];
        struct buf clause = BUF_INIT;
        bool fits = expected >> i & 1;
        for (size_t field = 0; field < N_FIELDS; field++)
            ways[field] = field == FUNC ? CLAUSE_FUNC : QUERY_FIXED;
        assert_true(query_compile(q, ways, look_up, &w->subjects[i], &clause));
        enum clause_answer known =
            clause_judge((uint8_t *)clause.data, clause.len, value_of, &w->subjects[i]);
        enum clause_answer unknown = clause_judge((uint8_t *)clause.data, clause.len, value_of, NULL);
        if (known != (fits ? CLAUSE_YES : CLAUSE_NO))
            fail_msg("a clause judges otherwise: %s", query_text(q));
        if (unknown != CLAUSE_UNKNOWN && unknown != known)
            fail_msg("a clause judges what it cannot know: %s", query_text(q));
        buf_release(&clause);
    }
}

TEST(random_queries_mean_the_same_as_clauses)
{
    struct world w = {.seed = 4};
    for (size_t round = 0; round < 2000; round++) {
        make_subjects(&w);
        for (size_t i = 0; i < N_SUBJECTS; i++)
            for (size_t f = 1; f < VALUES_MAX; f++)
                w.subjects[i].texts[FUNC][f] = NULL;
        buf_reset(&w.text);
        uint32_t expected = write_either(&w, 3);
        struct query *q = must_parse(buf_str(&w.text));
        check_clause(&w, q, expected);
        query_free(q);
    }
    buf_release(&w.text);
}

TEST(what_a_process_does_not_know_is_no_clause)
{
    static const int ways[N_FIELDS] = {[FUNC] = CLAUSE_FUNC, [SIZE] = QUERY_NOT_KNOWN};
    struct buf clause = BUF_INIT;
    struct query *size = must_parse("func:a or size>1"), *many = must_parse("func:a"), *none = must_parse("");
    assert_false(query_compile(size, ways, look_up, NULL, &clause));
    char *longer = repeat("func:a ", CLAUSE_COUNT_MOST + 1),
         *deep = repeat("!(func:a or ", CLAUSE_DEPTH_MOST);
    query_free(many);
    many = must_parse(longer);
    assert_false(query_compile(many, ways, look_up, NULL, &clause));
    struct buf nested = BUF_INIT;
    char *closed = repeat(")", CLAUSE_DEPTH_MOST);
    buf_printf(&nested, "%sfunc:b%s", deep, closed);
    query_free(many);
    many = must_parse(buf_str(&nested));
    assert_false(query_compile(many, ways, look_up, NULL, &clause));
    buf_reset(&clause);
    assert_true(query_compile(none, ways, look_up, NULL, &clause));
    assert_int_equal(clause_judge((uint8_t *)clause.data, clause.len, value_of, NULL), CLAUSE_YES);
    query_free(size);
    query_free(many);
    query_free(none);
    buf_release(&clause);
    buf_release(&nested);
    free(longer);
    free(deep);
    free(closed);
}

TEST(every_number_prints_as_it_reads)
{
    uint64_t seed = 3;
    for (size_t round = 0; round < 50000; round++) {
        char text[96];
        int64_t n = (int64_t)random_below(&seed, UINT32_MAX) << random_below(&seed, 32);
        n = round & 1 ? -n : n;
        snprintf(text, sizeof(text), "size=%" PRId64 " or age=%" PRId64 "ns or pid=%" PRId64, n, n, n);
        struct query *q = must_parse(text), *again = must_parse(query_text(q));
        assert_string_equal(query_text(again), query_text(q));
        assert_true(query_match(again, look_up, &HAS_SIZE(n)));
        assert_true(query_match(again, look_up, &HAS_AGE(n)));
        assert_true(query_match(again, look_up, &HAS_PID(n)));
        query_free(q);
        query_free(again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_globs_agree_with_brute_force),
        cmocka_unit_test(a_glob_made_to_explode_does_not),
        cmocka_unit_test(random_queries_mean_what_was_written_and_print_back),
        cmocka_unit_test(random_queries_mean_the_same_as_clauses),
        cmocka_unit_test(what_a_process_does_not_know_is_no_clause),
        cmocka_unit_test(every_number_prints_as_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
