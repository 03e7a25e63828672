/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/wrappers: how a list is read, whatever is in it, and which frames of a stack are passed over then.
 */
#include "model/profile/wrappers.h"
#include "test_view_truth.h"

static struct wrappers_bad read_list(struct wrappers *w, const char *text, size_t len)
{
    struct wrappers_bad bad;
    char *copy = mem_alloc(len ? len : 1); /* no NUL at its end, and nothing behind it */
    if (len)
        memcpy(copy, text, len);
    wrappers_add(w, copy, len, &bad);
    free(copy);
    return bad;
}

static void list_is_read(void **state)
{
    (void)state;
    struct wrappers w = {0};
    const char *text =
        "# all\nxmalloc\n\t operator new*  # C++\r\n\n  \ng_?alloc\n!g_talloc\nstd::*\n!std::mine\n"
        "weird\\*name\na#b";
    struct wrappers_bad bad = read_list(&w, text, strlen(text));
    assert_int_equal(bad.lines, 0);
    assert_int_equal(w.all.len, 8);
    static const char *const yes[] = {
        "xmalloc", "operator new", "operator new[]", "g_malloc", "std::vector<>::a", "weird*name", "a#b"};
    static const char *const no[] = {"xmallocz",   "my_xmalloc", "g_talloc", "std::mine",
                                     "weirdXname", "a",          ""};
    for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
        assert_true(wrappers_have(&w, yes[i]));
    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
        assert_false(wrappers_have(&w, no[i]));
    read_list(&w, "g_talloc\n!xmalloc", 17); /* a later list has the last word */
    assert_true(wrappers_have(&w, "g_talloc"));
    assert_false(wrappers_have(&w, "xmalloc"));
    wrappers_release(&w);
}

static void bad_lines_are_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *why;
    } cases[] = {
        {"one\n!\ntwo", 9, "a ! without a pattern"},
        {"one\n*\ntwo", 9, "the pattern fits every function"},
        {"one\n ?* \ntwo", 12, "the pattern fits every function"},
        {"one\na\0b\ntwo", 11, "a control character in the pattern"},
        {"one\n\x1b[2J\ntwo", 12, "a control character in the pattern"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct wrappers w = {0};
        struct wrappers_bad bad = read_list(&w, cases[i].text, cases[i].len);
        assert_int_equal(bad.lines, 1);
        assert_int_equal(bad.first, 2);
        assert_string_equal(bad.why, cases[i].why);
        assert_int_equal(w.all.len, 2);
        assert_true(wrappers_have(&w, "one") && wrappers_have(&w, "two"));
        wrappers_release(&w);
    }
}

static void lists_have_bounds(void **state)
{
    (void)state;
    struct wrappers w = {0};
    struct buf text = BUF_INIT;
    for (size_t i = 0; i <= WRAPPERS_LINE_BYTES; i++)
        buf_addch(&text, 'a');
    struct wrappers_bad bad = read_list(&w, text.data, text.len);
    assert_int_equal(bad.lines, 1);
    assert_string_equal(bad.why, "the line is too long for a pattern");
    bad = read_list(&w, text.data, text.len - 1);
    assert_int_equal(bad.lines, 0);
    buf_reset(&text);
    for (size_t i = 0; i < WRAPPERS_MAX + 9; i++)
        buf_addstr(&text, "x\n");
    bad = read_list(&w, text.data, text.len);
    assert_int_equal(w.all.len, WRAPPERS_MAX);
    assert_int_equal(bad.lines, 10);
    assert_int_equal(bad.first, WRAPPERS_MAX);
    buf_release(&text);
    wrappers_release(&w);
}

/* ---- what is passed over ---- */

static void mark(struct profile *p, const char *list)
{
    struct wrappers w = {0};
    read_list(&w, list, strlen(list));
    wrappers_mark(&w, p);
    wrappers_release(&w);
}

/* A stack of functions, innermost first, each in the program; "lib:name" in a library; "<name" inlined into the
 * next. */
static uint32_t stack_of(struct profile *p, enum profile_stack_end end, const char *const *names)
{
    uint32_t at[16], depth = 0;
    bool inlined = false;
    for (; *names; names++) {
        bool library = !strncmp(*names, "lib:", 4), into = **names == '<';
        const char *name = *names + (library ? 4 : into ? 1 : 0);
        if (inlined)
            add_line(p, name, "/src/a.c", 1);
        else
            at[depth++] = add_code(p, library, 0x1000 + p->locations.len, name, "/src/a.c", 1);
        inlined = into;
    }
    return add_stack(p, end, depth, at);
}

static struct profile *two_modules(void)
{
    struct profile *p = profile_new();
    add_image(p, "prog", 1, "/bin/prog");
    add_module(p, "/bin/prog", 0x1000);
    add_module(p, "/lib/libx.so.1", 0x100000);
    return p;
}

static void who_asked(void **state)
{
    (void)state;
    static const struct {
        const char *names[6];
        enum profile_stack_end end;
        const char *asker;
    } cases[] = {
        {{"xmalloc", "xstrdup", "read_line", "main"}, PROFILE_STACK_WHOLE, "read_line"},
        {{"read_line", "xmalloc", "main"}, PROFILE_STACK_WHOLE, "read_line"},  /* only the innermost */
        {{"<xmalloc", "read_line", "main"}, PROFILE_STACK_WHOLE, "read_line"}, /* inlined ones, too */
        {{"<xmalloc", "<xstrdup", "xstrdup"},
         PROFILE_STACK_WHOLE,
         "xstrdup"},                                            /* nothing else: the outermost */
        {{"xmalloc", "xstrdup"}, PROFILE_STACK_CUT, "xstrdup"}, /* where it was cut is no asker */
        {{"lib:libx.so.1+0x10", "lib:xmalloc", "main"}, PROFILE_STACK_WHOLE, "main"},
        {{"lib:libx.so.1+0x10", "lib:libx.so.1+0x20", "lib:xmalloc", "main"}, PROFILE_STACK_WHOLE, "main"},
        {{"lib:libx.so.1+0x10", "xmalloc", "main"}, PROFILE_STACK_WHOLE, "libx.so.1+0x10"}, /* another's */
        {{"lib:libx.so.1+0x1", "lib:libx.so.1+0x2", "lib:libx.so.1+0x3", "lib:xmalloc", "main"},
         PROFILE_STACK_WHOLE,
         "libx.so.1+0x1"}, /* too many to be an allocator's */
        {{"lib:libx.so.1+0x10", "lib:parse", "main"}, PROFILE_STACK_WHOLE, "libx.so.1+0x10"},
        {{"xmalloc", "lib:libx.so.1+0x10", "lib:xmalloc", "main"}, PROFILE_STACK_WHOLE, "main"},
    };
    struct frames frames = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct profile *p = two_modules();
        char scratch[FRAME_NAME_BYTES];
        uint32_t stack = stack_of(p, cases[i].end, cases[i].names);
        frames_of(&frames, p, stack);
        assert_int_equal(frames_passed_over(p, &frames), 0); /* not marked yet */
        mark(p, "xmalloc\nxstrdup");
        const struct frame *asker = frames.at + frames_passed_over(p, &frames);
        assert_string_equal(frame_function(p, asker, scratch), cases[i].asker);
        profile_free(p);
    }
    vec_release(&frames);
}

static void rows_are_who_asked(void **state)
{
    (void)state;
    static const char *const parse[] = {"lib:xmalloc", "parse", "main", NULL};
    static const char *const only[] = {"lib:xmalloc", NULL};
    struct profile *p = two_modules();
    for (int k = 0; k < 2; k++)
        add_objects(p, (struct objects){0, stack_of(p, PROFILE_STACK_WHOLE, k ? only : parse), 0, 1000, 3, 3,
                                        3, 1, 0, 0, 0});
    mark(p, "xmalloc");
    struct rollup *r = roll(p, ROLLUP_BY_FUNCTION, ROLLUP_SORT_LIVE);
    assert_near(live_of(&row_named(r, "parse")->self), 3000);
    assert_near(live_of(&row_named(r, "xmalloc")->self), 3000); /* where nobody else is known */
    assert_near(live_of(&row_named(r, "xmalloc")->inclusive), 3000);
    assert_near(live_of(&r->total), 6000);
    rollup_free(r);
    r = roll(p, ROLLUP_BY_MODULE, ROLLUP_SORT_LIVE);
    assert_near(live_of(&row_named(r, "/bin/prog")->self), 3000);
    rollup_free(r);
    r = roll(p, ROLLUP_BY_OWNER, ROLLUP_SORT_LIVE);
    assert_near(live_of(&row_named(r, "parse")->self), 3000);
    rollup_free(r);
    r = roll(p, ROLLUP_BY_STACK, ROLLUP_SORT_LIVE);
    assert_string_equal(r->rows.at[0].name, "xmalloc"); /* a stack is shown whole */
    rollup_free(r);
    mark(p, "");
    r = roll(p, ROLLUP_BY_FUNCTION, ROLLUP_SORT_LIVE);
    assert_near(live_of(&row_named(r, "xmalloc")->self), 6000);
    rollup_free(r);
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a list is read: patterns, comments, what is taken away", list_is_read),
        TEST("bad lines are left out and told, the rest is used", bad_lines_are_left_out),
        TEST("lines and lists have bounds", lists_have_bounds),
        TEST("the innermost wrappers of a stack are passed over, and never all of it", who_asked),
        TEST("rows by function, module and owner are who asked", rows_are_who_asked),
    };
    return cmocka_run_group_tests_name("wrappers", tests, NULL, NULL);
}
