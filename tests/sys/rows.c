/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows, from the kernel's tables to the tool's, with a tool of the test's own (rows.bpf.c): each event is in them once.
 * Takes root. rows OBJECT: the programs.
 */
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "own_tool.h"
#include "rows.h"

#define NAMES_MOST 64u

static uint32_t deep;

static void add(void *sum, const void *value)
{
    ((struct rows_value *)sum)->events += ((const struct rows_value *)value)->events;
}

static void row(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    (void)s;
    char name[sizeof(struct rows_key) + 1] = "";
    memcpy(name, key, sizeof(struct rows_key));
    table_row(t);
    table_text(t, 0, name);
    table_whole(t, 1, ((const struct rows_value *)sum)->events);
}

static int ready(struct sys_session *s, struct error *e)
{
    (void)e;
    uint32_t *variable = sys_variable(s, "deep", sizeof(deep));
    assert_non_null(variable);
    *variable = deep;
    return 0;
}

static const struct table_column columns[] = {
    {.name = "name", .type = TABLE_TEXT},
    {.name = "events", .type = TABLE_WHOLE, .unit = TABLE_COUNT},
};
static const struct sys_attach_method methods[] = {
    {.name = "raw_tp", .attach = SYS_ATTACH({"renames", NULL, NULL, NULL, 0})},
    {.name = NULL},
};
static const struct sys_part parts[] = {
    {"name", "its name", 0, sizeof(struct rows_key), 0, 0, false},
    {NULL, NULL, 0, 0, 0, 0, false},
};
static const struct sys_tool tool = {
    .name = "rows",
    .summary = "threads that rename themselves",
    .object = own_tool_object,
    .object_bytes = &own_tool_object_bytes,
    .methods = methods,
    .columns = columns,
    .n_columns = 2,
    .weight = 1,
    .parts = parts,
    .key_bytes = sizeof(struct rows_key),
    .value_bytes = sizeof(struct rows_value),
    .add = add,
    .row = row,
    .ready = ready,
};

/* ---- a process that renames itself ---- */

struct renamer {
    pid_t pid;
    int go, done;
};

struct order {
    unsigned cpus; /* it moves to the next one after each MOVE times */
    unsigned names, times;
};

#define MOVE 512u

static void rename_as_told(const struct order *o)
{
    for (unsigned i = 0; i < o->times; i++) {
        char name[16];
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(i / MOVE % o->cpus, &one);
        if (i % MOVE == 0)
            sched_setaffinity(0, sizeof(one), &one);
        snprintf(name, sizeof(name), "rows-%03u", i % o->names);
        prctl(PR_SET_NAME, name);
    }
}

static struct renamer renamer_start(void)
{
    int go[2], done[2];
    struct order o;
    assert_int_equal(pipe(go) | pipe(done), 0);
    pid_t pid = fork();
    if (pid) {
        close(go[0]);
        close(done[1]);
        return (struct renamer){pid, go[1], done[0]};
    }
    close(go[1]);
    while (read(go[0], &o, sizeof(o)) == sizeof(o)) {
        rename_as_told(&o);
        if (write(done[1], "d", 1) != 1)
            break;
    }
    _exit(0);
}

static void renamer_begin(const struct renamer *r, struct order o)
{
    assert_int_equal(write(r->go, &o, sizeof(o)), sizeof(o));
}

static void renamer_wait(const struct renamer *r)
{
    char c;
    assert_int_equal(read(r->done, &c, 1), 1);
}

static void renamer_end(const struct renamer *r)
{
    close(r->go);
    close(r->done);
    waitpid(r->pid, NULL, 0);
}

/* ---- the tool ---- */

static struct sys_session *open_tool(const struct renamer *r, uint32_t levels, uint32_t rows_max)
{
    deep = levels;
    return own_tool_open(&tool, r->pid, (struct sys_settings){.rows_max = rows_max});
}

static uint64_t sum_of(const struct table *t)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < table_rows(t); i++)
        sum += table_at(t, i, 1)->whole;
    return sum;
}

/* Events in the rows that are taken now, and how many rows there are. */
static uint64_t take(struct sys_session *s, uint32_t *rows)
{
    struct table *t = table_new("rows", 1, columns, 2);
    assert_int_equal(sys_take_rows(s, t), 0);
    uint64_t sum = sum_of(t);
    *rows = table_rows(t);
    table_free(t);
    return sum;
}

static uint64_t rename_and_take(struct sys_session *s, const struct renamer *r, struct order o,
                                uint32_t *rows)
{
    renamer_begin(r, o);
    renamer_wait(r);
    return take(s, rows);
}

/* How many events found no room. */
static uint64_t lost(struct sys_session *s)
{
    sys_read_counts(s);
    return s->counted[SYS_TABLE_FULL];
}

static unsigned all_cpus(void)
{
    return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

/* ---- tests ---- */

static void what_interrupts_is_counted(void **state)
{
    (void)state;
    for (uint32_t levels = 1; levels <= SYS_ROW_LEVELS; levels++) {
        uint32_t rows;
        struct renamer r = renamer_start();
        struct sys_session *s = open_tool(&r, levels, 0);
        assert_int_equal(rename_and_take(s, &r, (struct order){1, 1, 1000}, &rows), 1000 * levels);
        assert_int_equal(rows, 1);
        assert_int_equal(lost(s), 0);
        sys_close(s);
        renamer_end(&r);
    }
}

static void what_goes_too_deep_is_lost(void **state)
{
    (void)state;
    uint32_t rows;
    struct renamer r = renamer_start();
    struct sys_session *s = open_tool(&r, SYS_ROW_LEVELS + 1, 0);
    assert_int_equal(rename_and_take(s, &r, (struct order){1, 1, 1000}, &rows), 1000 * SYS_ROW_LEVELS);
    assert_int_equal(lost(s), 1000);
    sys_close(s);
    renamer_end(&r);
}

static void rows_of_all_cpus_are_one(void **state)
{
    (void)state;
    uint32_t rows;
    struct renamer r = renamer_start();
    struct sys_session *s = open_tool(&r, 1, 0);
    const struct order o = {all_cpus(), NAMES_MOST, 4 * MOVE * all_cpus()};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rename_and_take(s, &r, o, &rows), o.times);
        assert_int_equal(rows, NAMES_MOST);
        assert_int_equal(take(s, &rows), 0); /* each is taken once */
        assert_int_equal(rows, 0);
    }
    assert_int_equal(lost(s), 0);
    sys_close(s);
    renamer_end(&r);
}

static void what_finds_no_room_is_lost(void **state)
{
    (void)state;
    uint32_t rows;
    struct renamer r = renamer_start();
    struct sys_session *s = open_tool(&r, 1, 8);
    const struct order o = {1, NAMES_MOST, 64 * NAMES_MOST};
    const uint64_t seen = rename_and_take(s, &r, o, &rows);
    assert_in_range(rows, 1, NAMES_MOST - 1);
    assert_true(seen > 0 && lost(s) > 0);
    assert_int_equal(seen + lost(s), o.times);
    sys_close(s);
    renamer_end(&r);
}

/* The tables are turned while the programs add to them. */
static void rows_taken_meanwhile_are_all(void **state)
{
    (void)state;
    uint32_t rows;
    uint64_t sum = 0;
    struct renamer r = renamer_start();
    struct sys_session *s = open_tool(&r, 2, 0);
    const struct order o = {all_cpus(), NAMES_MOST, 300000};
    renamer_begin(&r, o);
    struct pollfd done = {.fd = r.done, .events = POLLIN};
    while (poll(&done, 1, 0) == 0)
        sum += take(s, &rows);
    sum += take(s, &rows);
    assert_int_equal(sum, 2 * o.times);
    assert_int_equal(lost(s), 0);
    sys_close(s);
    renamer_end(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        {"what comes while a program adds to the same row is counted", what_interrupts_is_counted},
        {"what comes deeper than interrupts can is counted as lost", what_goes_too_deep_is_lost},
        {"rows of all CPUs are one, and taken once", rows_of_all_cpus_are_one},
        {"what finds no room is counted as lost", what_finds_no_room_is_lost},
        {"rows that are taken while programs add to them hold each event once", rows_taken_meanwhile_are_all},
    };
    if (argc != 2)
        return 2;
    own_tool_load(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
