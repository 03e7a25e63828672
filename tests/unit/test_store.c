/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/store, the file as its writer leaves it: what was put is what is loaded; nothing is kept twice; nothing is
 * overwritten unasked; others may read while it is written.
 */
#include "test_store.h"

#include "store/schema.h"

static void random_images_come_back_as_they_were(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint64_t s = seed;
        struct recording *r = create();
        struct profile *p = new_image(&s, draw(&s));
        for (uint64_t step = 0; step < seed; step++)
            grow(p, &s, seed * 3);
        assert_ok(recording_put_image(r, p, true, &err));
        assert_ok(recording_close(r, &err));
        assert_holds(p);
        profile_free(p);
        unlink(file);
    }
}

static void an_image_that_grows_is_what_it_was_last(void **state)
{
    (void)state;
    uint64_t seed = 5;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42);
    for (int step = 0; step < 20; step++) {
        put(r, p);
        assert_ok(recording_commit(r, &err));
        assert_holds(p);
        grow(p, &seed, 10);
    }
    assert_ok(recording_put_image(r, p, true, &err));
    assert_refused(recording_put_image(r, p, true, &err), EINVAL, "for the last time before");
    assert_ok(recording_close(r, &err));
    assert_holds(p);
    profile_free(p);
}

static void cells_that_vanish_or_become_others_are_replaced(void **state)
{
    (void)state;
    uint64_t seed = 6;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42), *back;
    grow(p, &seed, 50);
    put(r, p);
    p->samples.len = p->frees.len = 0;
    for (size_t i = 0; i < p->cells.len; i += 3) {
        p->cells.at[i].size_class ^= 1;
        p->cells.at[i].stack = below(&seed, p->stacks.len);
        p->cells.at[i].thread = below(&seed, p->threads.len);
    }
    put(r, p);
    assert_ok(recording_commit(r, &err));
    assert_holds(p);
    size_t n = p->cells.len;
    p->cells.len -= 10;
    put(r, p);
    assert_ok(recording_close(r, &err));
    assert_ok(recording_load(&back, file, NULL, &err));
    assert_int_equal(back->cells.len, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(back->cells.at[i].allocated.samples != 0, i < n - 10);
    profile_free(back);
    profile_free(p);
}

static void a_place_that_gets_its_name_later_has_it(void **state)
{
    (void)state;
    uint64_t seed = 7;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42);
    vec_each (struct profile_location, o, &p->locations)
        o->n_lines = 0;
    put(r, p);
    assert_ok(recording_commit(r, &err));
    assert_holds(p);
    vec_each (struct profile_location, o, &p->locations)
        name_location(p, o);
    put(r, p);
    assert_ok(recording_close(r, &err));
    assert_holds(p);
    profile_free(p);
}

static void images_of_one_program_share_what_they_have_in_common(void **state)
{
    (void)state;
    struct recording *r = create();
    struct profile *back;
    int64_t rows[2];
    for (uint64_t id = 1; id <= 40; id++) {
        uint64_t seed = 8, start = id;
        struct profile *p = new_image(&seed, id);
        grow(p, &seed, 30);
        vec_each (struct profile_module, m, &p->modules) {
            uint64_t size = m->end - m->start;
            m->bias = m->start = draw(&start) >> 17 << 12;
            m->end = m->start + size;
        }
        vec_each (struct profile_location, o, &p->locations)
            if (o->module == PROFILE_NONE)
                o->address = 0; /* an address outside every module says nothing in another image */
        assert_ok(recording_put_image(r, p, true, &err));
        profile_free(p);
        if (id == 1 || id == 40) {
            assert_ok(recording_commit(r, &err));
            rows[id > 1] = ask("SELECT (SELECT count(*) FROM string) + (SELECT count(*) FROM module) +"
                               " (SELECT count(*) FROM location) + (SELECT count(*) FROM line) +"
                               " (SELECT count(*) FROM stack)");
        }
    }
    assert_ok(recording_close(r, &err));
    assert_int_equal(rows[0], rows[1]);
    assert_ok(recording_load(&back, file, NULL, &err));
    assert_int_equal(back->images.len, 40);
    assert_int_equal(back->cells.len, 40 * 50);
    assert_true(back->stacks.len <= 50);
    assert_true(profile_valid(back));
    profile_free(back);
}

static void code_outside_modules_is_each_images_own(void **state)
{
    (void)state;
    struct recording *r = create();
    struct profile *back;
    for (uint64_t id = 1; id <= 2; id++) {
        uint64_t seed = 9;
        struct profile *p = new_image(&seed, id);
        struct profile_location *o = &p->locations.at[p->stack_locations.at[0]];
        struct profile_line n = {.function = text_of(p, "jit%" PRIu64, id)};
        *o = (struct profile_location){PROFILE_NONE, 0x1234, false, (uint32_t)p->lines.len, 1};
        *vec_push(&p->lines) = n;
        assert_ok(recording_put_image(r, p, true, &err));
        profile_free(p);
    }
    assert_ok(recording_close(r, &err));
    assert_int_equal(ask("SELECT count(*) FROM line JOIN string s ON s.id = function WHERE text LIKE 'jit%'"),
                     2);
    assert_ok(recording_load(&back, file, NULL, &err));
    profile_free(back);
}

static void lifetimes_by_another_clock_go_to_the_nearest_class(void **state)
{
    (void)state;
    uint64_t seed = 10;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 1), *back;
    uint64_t sum = 0;
    assert_ok(recording_put_image(r, p, true, &err));
    for (size_t k = 0; k < PROFILE_LIFETIMES - 1; k++)
        p->lifetime_ns[k] = p->lifetime_ns[k] * 7 / 2; /* nearly the next one */
    memset(p->cells.at[0].lifetimes, 0, sizeof(p->cells.at[0].lifetimes));
    p->cells.at[0].lifetimes[3] = 5;
    p->cells.at[0].lifetimes[14] = 7;
    p->cells.at[0].lifetimes[15] = 9;
    p->images.at[0].id = 2;
    assert_ok(recording_put_image(r, p, true, &err));
    assert_ok(recording_close(r, &err));
    assert_ok(recording_load(&back, file, NULL, &err));
    const struct profile_cell *c = &back->cells.at[p->cells.len];
    for (size_t k = 0; k < PROFILE_LIFETIMES; k++)
        sum += c->lifetimes[k];
    assert_int_equal(c->lifetimes[4], 5);
    assert_int_equal(c->lifetimes[14], 7);
    assert_int_equal(c->lifetimes[15], 9);
    assert_int_equal(sum, 21);
    profile_free(back);
    profile_free(p);
}

static void figures_that_make_no_sense_are_cut(void **state)
{
    (void)state;
    uint64_t seed = 11;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 1), *back;
    p->cells.at[0].allocated = (struct profile_sums){UINT64_MAX, -1, 1e300, 0.0 / 0.0};
    put(r, p);
    assert_ok(recording_close(r, &err));
    assert_ok(recording_load(&back, file, NULL, &err));
    const struct profile_sums *s = &back->cells.at[0].allocated;
    assert_true(s->samples == INT64_MAX && s->seen_bytes == 0 && s->bytes == SQL_REAL_MAX && s->count == 0);
    profile_free(back);
    profile_free(p);
}

static void deep_stacks_and_long_texts_are_cut_and_say_so(void **state)
{
    (void)state;
    uint64_t seed = 12;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 1), *back;
    char *text = mem_alloc(3 * RECORDING_TEXT_MAX);
    memset(text, 'x', 3 * RECORDING_TEXT_MAX - 1);
    p->images.at[0].args = profile_string(p, text);
    struct profile_stack k = {(uint32_t)p->stack_locations.len, 3 * RECORDING_DEPTH_MAX, PROFILE_STACK_WHOLE};
    for (uint32_t i = 0; i < k.depth; i++)
        *vec_push(&p->stack_locations) = i ? below(&seed, p->locations.len) : 3;
    *vec_push(&p->stacks) = k;
    p->cells.at[0].stack = (uint32_t)p->stacks.len - 1;
    put(r, p);
    assert_ok(recording_close(r, &err));
    assert_ok(recording_load(&back, file, NULL, &err));
    const struct profile_stack *cut = &back->stacks.at[back->cells.at[0].stack];
    assert_int_equal(cut->depth, RECORDING_DEPTH_MAX);
    assert_int_equal(cut->end, PROFILE_STACK_CUT);
    assert_int_equal(back->stack_locations.at[cut->first], 3);
    assert_int_equal(strlen(profile_text(back, back->images.at[0].args)), RECORDING_TEXT_MAX);
    profile_free(back);
    profile_free(p);
    free(text);
}

static void facts_are_kept_and_images_not_kept_are_counted(void **state)
{
    (void)state;
    uint64_t seed = 13, first, last;
    int64_t number;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 1), *back;
    struct recording_summary s;
    put(r, p);
    assert_ok(recording_commit(r, &err));
    assert_ok(recording_times(file, &first, &last, &err));
    assert_true(first == T0 + 1 && last == T0 + 10);
    assert_ok(recording_set_text(r, RECORDING_COMMAND, "sh -c 'echo \"\xff\"'", &err));
    assert_ok(recording_set_number(r, RECORDING_PERIOD, 1 << 20, &err));
    assert_ok(recording_commit(r, &err));
    assert_ok(recording_load(&back, file, NULL, &err));
    assert_int_equal(back->period_bytes, 0); /* it may not be all yet */
    profile_free(back);
    assert_ok(recording_set_number(r, RECORDING_STARTED, T0 - 5, &err));
    assert_ok(recording_set_number(r, RECORDING_ENDED, T0 + 50, &err));
    assert_ok(recording_set_number(r, RECORDING_EXIT, 1, &err));
    assert_ok(recording_set_number(r, RECORDING_EXIT, -9, &err));
    assert_ok(recording_drop_image(r, 100.5, &err));
    assert_ok(recording_drop_image(r, 20, &err));
    assert_ok(recording_put_unobserved(r, "./tool", "is statically linked", 2, &err));
    assert_ok(recording_put_unobserved(r, "", "is statically linked", 1, &err));
    assert_ok(recording_put_unobserved(r, "./tool", "is statically linked", 5, &err));
    assert_ok(recording_put_unobserved(r, "gone", "is statically linked", 0,
                                       &err)); /* it did not start after all */
    assert_ok(recording_close(r, &err));
    assert_ok(recording_summarize(&s, file, &err));
    assert_string_equal(recording_text(&s, RECORDING_COMMAND), "sh -c 'echo \"\xff\"'");
    assert_true(recording_number(&s, RECORDING_EXIT, &number) && number == -9);
    assert_false(recording_number(&s, RECORDING_COMMAND, &number));
    assert_null(recording_text(&s, RECORDING_EXIT));
    assert_null(recording_text(&s, RECORDING_HOST));
    assert_true(s.images == 1 && s.images_dropped == 2 && s.first_ns == T0 - 5 && s.last_ns == T0 + 50);
    recording_summary_release(&s);
    assert_ok(recording_load(&back, file, NULL, &err));
    assert_true(back->images_dropped == 2 && back->images_dropped_peak_bytes == 120.5);
    assert_int_equal(back->period_bytes, 1 << 20);
    assert_int_equal(back->unobserved.len, 2);
    vec_each (const struct profile_unobserved, u, &back->unobserved) {
        const char *program = profile_text(back, u->program);
        assert_int_equal(u->processes, *program ? 5 : 1);
        assert_string_equal(*program ? program : "./tool", "./tool");
        assert_string_equal(profile_text(back, u->reason), "is statically linked");
    }
    profile_free(back);
    profile_free(p);
}

static void others_read_what_was_committed_while_it_is_written(void **state)
{
    (void)state;
    uint64_t seed = 17;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42), *empty;
    assert_int_equal(access(wal, F_OK), 0);
    assert_ok(recording_load(&empty, file, NULL, &err));
    assert_int_equal(empty->images.len, 0);
    put(r, p);
    assert_holds(empty);
    assert_ok(recording_commit(r, &err));
    assert_holds(p);
    assert_int_equal(access(wal, F_OK), 0);
    assert_ok(recording_close(r, &err));
    assert_holds(p);
    assert_true(access(wal, F_OK) && access(shm, F_OK));
    profile_free(empty);
    profile_free(p);
}

static void a_reader_that_stays_only_delays_the_end(void **state)
{
    (void)state;
    uint64_t seed = 18;
    sqlite3 *reader;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42);
    put(r, p);
    assert_ok(recording_commit(r, &err));
    assert_int_equal(sqlite3_open_v2(file, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sql_execute(reader, "BEGIN; SELECT * FROM cell"), SQLITE_OK);
    assert_refused(recording_close(r, &err), EBUSY, "-wal");
    sqlite3_close(reader);
    assert_holds(p);
    profile_free(p);
}

static void what_exists_is_replaced_only_when_forced(void **state)
{
    (void)state;
    struct recording *r = create();
    char link[80], old[80];
    snprintf(link, sizeof(link), "%s/link", test_folder);
    snprintf(old, sizeof(old), "%s/old", test_folder);
    assert_ok(recording_close(r, &err));
    assert_refused(recording_create(&r, file, false, &err), EEXIST,
                   "a.allium exists; use --force or another -o");
    assert_null(r);
    assert_ok(recording_create(&r, file, true, &err));
    pid_t child = fork();
    if (!child)
        _exit(recording_create(&r, file, true, &err) == -EBUSY && strstr(err.text, "another allium") ? 0 : 1);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_ok(recording_close(r, &err));

    assert_int_equal(rename(file, old), 0);
    assert_int_equal(symlink(old, link), 0);
    assert_refused(recording_create(&r, link, false, &err), EEXIST, "exists");
    assert_ok(recording_create(&r, link, true, &err)); /* the link goes, not what it leads to */
    assert_ok(recording_close(r, &err));
    assert_ok(recording_create(&r, file, false, &err));
    assert_ok(recording_close(r, &err));
    unlink(file);
    assert_int_equal(symlink("nowhere", wal), 0);
    assert_refused(recording_create(&r, file, false, &err), EEXIST, "-wal exists");
    assert_ok(recording_create(&r, file, true, &err));
    assert_ok(recording_close(r, &err));
    assert_refused(recording_create(&r, test_folder, true, &err), EISDIR, "is a directory");
    assert_refused(recording_create(&r, "/dev/null", true, &err), EINVAL, "not a regular file");
    assert_refused(recording_create(&r, "/nowhere\n/x", true, &err), ENOENT, "/nowhere?/x: No such file");
    assert_refused(recording_create(&r, "x/..", true, &err), EISDIR, "is not a file name");
}

static void a_file_moved_while_it_is_written_is_whole(void **state)
{
    (void)state;
    uint64_t seed = 19;
    char moved[80];
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42);
    snprintf(moved, sizeof(moved), "%s/moved", test_folder);
    put(r, p);
    assert_int_equal(rename(file, moved), 0);
    assert_refused(recording_close(r, &err), ENOENT, "was moved");
    unlink(wal);
    unlink(shm);
    assert_int_equal(rename(moved, file), 0);
    assert_holds(p);
    assert_true(access(wal, F_OK) && access(shm, F_OK)); /* reading leaves nothing behind */
    profile_free(p);
}

#ifndef RECORDING_MAN_PAGE
#define RECORDING_MAN_PAGE "man/allium-recording.5.scd"
#endif

static size_t count_rows(sqlite3 *db, const char *query)
{
    struct sql s;
    size_t rows = 0;
    if (sql_prepare(&s, db, query))
        fail_msg("%s: %s", query, sqlite3_errmsg(db));
    while (sql_row(&s))
        rows++;
    assert_int_equal(s.rc, SQLITE_OK);
    sql_finalize(&s);
    return rows;
}

/* Calls for the text of each literal block. */
static size_t run_examples(sqlite3 *db, char *page)
{
    size_t examples = 0;
    for (char *block = strstr(page, "```"), *end; block; block = strstr(end + 3, "```")) {
        block += 4;
        end = strstr(block, "```");
        assert_non_null(end);
        *end = '\0';
        if (strncmp(block, "SELECT", 6) && strncmp(block, "WITH", 4))
            continue;
        assert_true(count_rows(db, block) > 0);
        examples++;
    }
    return examples;
}

static void the_man_page_knows_every_table_and_its_examples_run(void **state)
{
    (void)state;
    uint64_t seed = 20;
    sqlite3 *db;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42);
    struct profile_point q = {.time_ns = p->taken_ns};
    assert_ok(recording_put_point(r, 42, &q, p, NULL, &err));
    assert_ok(recording_close(r, &err));
    profile_free(p);
    FILE *f = fopen(RECORDING_MAN_PAGE, "r");
    assert_non_null(f);
    char *page = mem_alloc(1 << 17);
    assert_in_range(fread(page, 1, (1 << 17) - 1, f), 1000, (1 << 17) - 2);
    fclose(f);
    for (int table = 0; table < SCHEMA_TABLES; table++) {
        char title[64];
        snprintf(title, sizeof(title), "\n## %s", schema_table_name((enum schema_table)table));
        const char *at = strstr(page, title);
        if (!at || !strchr(":( ", at[strlen(title)]))
            fail_msg("no chapter on %s", schema_table_name((enum schema_table)table));
    }
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_true(run_examples(db, page) >= 5);
    sqlite3_close(db);
    free(page);
}

static void a_large_image_comes_back_as_it_was(void **state)
{
    (void)state;
    uint64_t seed = 21;
    struct recording *r = create();
    struct profile *p = new_image(&seed, 42);
    add_places(p, &seed, 5000);
    add_stacks(p, &seed, 6000);
    add_cells(p, &seed, 10000, T0 + 10);
    put(r, p);
    assert_ok(recording_close(r, &err));
    assert_holds(p);
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_images_come_back_as_they_were, empty_folder),
        cmocka_unit_test_teardown(an_image_that_grows_is_what_it_was_last, empty_folder),
        cmocka_unit_test_teardown(cells_that_vanish_or_become_others_are_replaced, empty_folder),
        cmocka_unit_test_teardown(a_place_that_gets_its_name_later_has_it, empty_folder),
        cmocka_unit_test_teardown(images_of_one_program_share_what_they_have_in_common, empty_folder),
        cmocka_unit_test_teardown(code_outside_modules_is_each_images_own, empty_folder),
        cmocka_unit_test_teardown(lifetimes_by_another_clock_go_to_the_nearest_class, empty_folder),
        cmocka_unit_test_teardown(figures_that_make_no_sense_are_cut, empty_folder),
        cmocka_unit_test_teardown(deep_stacks_and_long_texts_are_cut_and_say_so, empty_folder),
        cmocka_unit_test_teardown(facts_are_kept_and_images_not_kept_are_counted, empty_folder),
        cmocka_unit_test_teardown(others_read_what_was_committed_while_it_is_written, empty_folder),
        cmocka_unit_test_teardown(a_reader_that_stays_only_delays_the_end, empty_folder),
        cmocka_unit_test_teardown(what_exists_is_replaced_only_when_forced, empty_folder),
        cmocka_unit_test_teardown(a_file_moved_while_it_is_written_is_whole, empty_folder),
        cmocka_unit_test_teardown(the_man_page_knows_every_table_and_its_examples_run, empty_folder),
        cmocka_unit_test_teardown(a_large_image_comes_back_as_it_was, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
