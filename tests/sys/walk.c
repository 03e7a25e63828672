/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User stacks as the tools take them (walk.bpf.c): each has the frames that the kernel's own walk finds, and none is
 * taken for another. A process lays chains of frames into its memory, and renames itself with the frame pointer at
 * one's beginning. Takes root. walk OBJECT: the programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "own_tool.h"
#include "walk.h"

#define PAGE      4096u
#define PAGES     64u
#define HOLE      40u /* a page that is not mapped */
#define UNTOUCHED 50u /* one that is, but was never touched */
#define RANDOM    400u
#define SAME_HASH 96u

/* ---- the tool ---- */

static bool one_hash;
static uint32_t busy;

static void add(void *sum, const void *value)
{
    struct walk_value *to = sum;
    const struct walk_value *v = value;
    const uint64_t events = to->events + v->events, same = to->same + v->same;
    *to = *v;
    to->events = events;
    to->same = same;
}

enum { NAME, EVENTS, SAME, OURS, THEIRS, NUMBER, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    {.name = "name", .type = TABLE_TEXT},
    {.name = "events", .type = TABLE_WHOLE, .unit = TABLE_COUNT},
    {.name = "same", .type = TABLE_WHOLE, .unit = TABLE_COUNT},
    {.name = "ours", .type = TABLE_WHOLE, .unit = TABLE_COUNT},
    {.name = "theirs", .type = TABLE_WHOLE, .unit = TABLE_COUNT},
    {.name = "number", .type = TABLE_WHOLE, .unit = TABLE_COUNT},
};

static void row(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    (void)s;
    const struct walk_value *v = sum;
    char name[sizeof(struct walk_key) + 1] = "";
    memcpy(name, key, sizeof(struct walk_key));
    table_row(t);
    table_text(t, NAME, name);
    table_whole(t, EVENTS, v->events);
    table_whole(t, SAME, v->same);
    table_whole(t, OURS, v->ours);
    table_whole(t, THEIRS, v->theirs);
    table_whole(t, NUMBER, (uint64_t)v->number);
}

static int ready(struct sys_session *s, struct error *e)
{
    (void)e;
    *(bool *)sys_variable(s, "one_hash", sizeof(one_hash)) = one_hash;
    *(uint32_t *)sys_variable(s, "busy", sizeof(busy)) = busy;
    return 0;
}

static const struct sys_attach_method methods[] = {
    {.name = "raw_tp", .attach = SYS_ATTACH({"renames", NULL, NULL, NULL, 0})},
    {.name = NULL},
};
static const struct sys_part parts[] = {
    {"name", "its name", 0, sizeof(struct walk_key), 0, 0, false},
    {NULL, NULL, 0, 0, 0, 0, false},
};
static const struct sys_tool tool = {
    .name = "walk",
    .summary = "stacks of threads that rename themselves",
    .object = own_tool_object,
    .object_bytes = &own_tool_object_bytes,
    .methods = methods,
    .columns = columns,
    .n_columns = COLUMNS,
    .weight = EVENTS,
    .parts = parts,
    .key_bytes = sizeof(struct walk_key),
    .value_bytes = sizeof(struct walk_value),
    .add = add,
    .row = row,
    .ready = ready,
};

/* ---- chains ---- */

static char *memory;

/* A frame as a frame pointer leads to it, wherever that is. */
static uintptr_t frame(uintptr_t at, uintptr_t next, uintptr_t returns_to)
{
    memcpy((void *)at, &next, sizeof(next));
    memcpy((void *)(at + sizeof(next)), &returns_to, sizeof(returns_to));
    return at;
}

static uintptr_t page(unsigned which)
{
    return (uintptr_t)memory + (size_t)which * PAGE;
}

/* So many frames so far apart, the last of which leads to `end`. */
static uintptr_t chain(uintptr_t from, unsigned n, unsigned apart, uintptr_t end)
{
    for (unsigned i = 0; i < n; i++)
        frame(from + (size_t)i * apart, i + 1 < n ? from + (size_t)(i + 1) * apart : end, 0x1000 + i);
    return from;
}

/* One copy of its system call: its address is part of the stack. */
__attribute__((noinline)) static void rename_at(const char *name, uintptr_t frame_pointer)
{
    long result = SYS_prctl;
    __asm__ volatile("mov %%rbp, %%rbx\n\tmov %[at], %%rbp\n\tsyscall\n\tmov %%rbx, %%rbp"
                     : "+a"(result)
                     : "D"((long)PR_SET_NAME), "S"(name), [at] "r"(frame_pointer)
                     : "rbx", "rcx", "r11", "memory");
    if (result)
        _exit(1);
}

static uintptr_t usual(void)
{
    return chain(page(1), 20, 64, 0);
}

static uintptr_t deep(void)
{
    return chain(page(1), 300, 48, 0);
}

static uintptr_t wide(void)
{
    return chain(page(1), 12, 3000, 0);
}

static uintptr_t packed(void)
{
    return chain(page(2) + 3, 30, 16, 0);
}

static uintptr_t up_and_down(void)
{
    uintptr_t at = 0;
    for (unsigned i = 0; i < 40; i++)
        at = frame(page(3 + i % 2) + (i % 2 ? 1000 - 20 * i : 20 * i), at, 0x2000 + i);
    return at;
}

static uintptr_t across_pages(void)
{
    return chain(page(5) - 8, 1, 16, frame(page(6) - 16, frame(page(7) - 1, 0, 1), 2));
}

static uintptr_t to_the_hole(void)
{
    return frame(page(HOLE) - 16, page(HOLE), 3);
}

static uintptr_t into_the_hole(void)
{
    return frame(page(8), page(HOLE) - 8, 4);
}

static uintptr_t to_the_untouched(void)
{
    return frame(page(UNTOUCHED) - 16, page(UNTOUCHED) + 8, 5);
}

static uintptr_t into_the_untouched(void)
{
    return frame(page(8), page(UNTOUCHED) - 8, 6);
}

static uintptr_t round_and_round(void)
{
    return frame(page(9), page(9), 7);
}

static uintptr_t to_one(void)
{
    return frame(page(9), 1, 8);
}

static uintptr_t to_the_kernel(void)
{
    return frame(page(9), (uintptr_t)0xffffffff81000000, 9);
}

static uintptr_t to_nowhere(void)
{
    return frame(page(9), (uintptr_t)0x00ff00ff00ff00f0, 10);
}

static uintptr_t just_below_all(void)
{
    return frame(page(9), UINTPTR_MAX - 7, 11);
}

static uintptr_t returns_to_zero(void)
{
    return frame(page(9), frame(page(10), 0, 12), 0);
}

static uintptr_t none(void)
{
    return 0;
}

static const struct {
    const char *name;
    uintptr_t (*lay)(void);
    unsigned frames; /* with the first, which is where it is */
} cases[] = {
    {"usual", usual, 21},
    {"deep", deep, SYS_STACK_DEPTH},
    {"wide", wide, 13},
    {"packed", packed, 31},
    {"updown", up_and_down, 41},
    {"across", across_pages, 4},
    {"to hole", to_the_hole, 2},
    {"in hole", into_the_hole, 2},
    {"to untd", to_the_untouched, 2},
    {"in untd", into_the_untouched, 2},
    {"round", round_and_round, SYS_STACK_DEPTH},
    {"to one", to_one, 2},
    {"kernel", to_the_kernel, 2},
    {"nowhere", to_nowhere, 2},
    {"below", just_below_all, 2},
    {"zero", returns_to_zero, 3},
    {"none", none, 1},
};
#define CASES (sizeof(cases) / sizeof(*cases))

static uintptr_t anywhere(void)
{
    uintptr_t at;
    do
        at = page(0) + (size_t)random() % ((PAGES - 1) * PAGE);
    while (at / PAGE == page(HOLE) / PAGE || at / PAGE == page(UNTOUCHED) / PAGE ||
           (at + 16) / PAGE == page(HOLE) / PAGE || (at + 16) / PAGE == page(UNTOUCHED) / PAGE);
    return at;
}

/* Frames that lead to one another, mostly near by, as chance has it; some overlap. */
static uintptr_t by_chance(void)
{
    uintptr_t at = random() % 2 ? 0 : (uintptr_t)random();
    for (unsigned n = (unsigned)random() % 200; n; n--) {
        uintptr_t near = at - (uintptr_t)random() % 2048 - 16, to = anywhere();
        if (random() % 8 && near / PAGE == at / PAGE && near >= page(0) && near < page(HOLE - 1))
            to = near;
        at = frame(to, at, (uintptr_t)random());
    }
    return at;
}

static void lay_memory(void)
{
    memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE))
        _exit(1);
    for (unsigned i = 0; i < PAGES; i++)
        if (i != UNTOUCHED)
            *(volatile char *)page(i) = 0;
    munmap((void *)page(HOLE), PAGE);
}

static void each_case(void)
{
    for (size_t i = 0; i < CASES; i++)
        rename_at(cases[i].name, cases[i].lay());
    srandom(1);
    for (unsigned i = 0; i < RANDOM; i++)
        rename_at("chance", by_chance());
}

static void one_after_the_other(void)
{
    for (unsigned times = 0; times < 2; times++)
        for (unsigned i = 0; i < SAME_HASH; i++) {
            char name[16];
            snprintf(name, sizeof(name), "s-%u", i);
            rename_at(name, chain(page(1), 1 + i, 64, 0));
        }
}

static void usual_once(void)
{
    rename_at("usual", usual());
}

/* ---- a process that does it ---- */

static struct table *seen_of(void (*work)(void), struct sys_session **s)
{
    int go[2];
    char c = 'g';
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    if (!pid) {
        close(go[1]);
        lay_memory();
        if (read(go[0], &c, 1) == 1)
            work();
        _exit(0);
    }
    close(go[0]);
    *s = own_tool_open(&tool, pid, (struct sys_settings){.config.stacks = SYS_STACK_USER});
    assert_int_equal(write(go[1], &c, 1), 1);
    close(go[1]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct table *t = table_new("walk", 1, columns, COLUMNS);
    assert_int_equal(sys_take_rows(*s, t), 0);
    sys_read_counts(*s);
    return t;
}

static uint32_t row_of(const struct table *t, const char *name)
{
    for (uint32_t i = 0; i < table_rows(t); i++)
        if (!strcmp(table_at(t, i, NAME)->text, name))
            return i;
    fail_msg("no row %s", name);
    return 0;
}

static uint64_t value(const struct table *t, const char *name, uint32_t column)
{
    return table_at(t, row_of(t, name), column)->whole;
}

/* ---- tests ---- */

static void finds_what_the_kernel_finds(void **state)
{
    (void)state;
    struct sys_session *s;
    one_hash = false;
    busy = 0;
    struct table *t = seen_of(each_case, &s);
    for (size_t i = 0; i < CASES; i++) {
        const char *name = cases[i].name;
        if (value(t, name, THEIRS) != cases[i].frames || value(t, name, OURS) != cases[i].frames)
            fail_msg("%s: %u frames, ours %u, the kernel's %u", name, cases[i].frames,
                     (unsigned)value(t, name, OURS), (unsigned)value(t, name, THEIRS));
        assert_int_equal(value(t, name, SAME), 1);
    }
    assert_int_equal(value(t, "chance", EVENTS), RANDOM);
    assert_int_equal(value(t, "chance", SAME), RANDOM);
    assert_int_equal(s->counted[SYS_STACK_FAILED], 0);
    table_free(t);
    sys_close(s);
}

/* Slots near by are looked through; what is beyond them is lost, and counted. */
static void stays_apart_with_one_hash(void **state)
{
    (void)state;
    struct sys_session *s;
    one_hash = true;
    busy = 0;
    struct table *t = seen_of(one_after_the_other, &s);
    uint32_t kept = 0;
    assert_int_equal(table_rows(t), SAME_HASH);
    for (uint32_t i = 0; i < SAME_HASH; i++) {
        char name[16];
        snprintf(name, sizeof(name), "s-%u", i);
        const int64_t number = (int64_t)value(t, name, NUMBER);
        if (number < 0)
            continue;
        kept++;
        assert_int_equal(value(t, name, OURS), 2 + i);
        assert_int_equal(value(t, name, SAME), 2);
    }
    assert_in_range(kept, 16, SAME_HASH - 1);
    assert_int_equal(s->counted[SYS_STACKS_FULL], 2 * (SAME_HASH - kept));
    table_free(t);
    sys_close(s);
}

static void finds_a_place_when_it_interrupts(void **state)
{
    (void)state;
    one_hash = false;
    for (busy = 1; busy <= SYS_ROW_LEVELS; busy++) {
        struct sys_session *s;
        struct table *t = seen_of(usual_once, &s);
        const bool lost = busy == SYS_ROW_LEVELS;
        assert_int_equal(value(t, "usual", SAME), !lost);
        assert_int_equal(s->counted[SYS_STACK_FAILED], lost);
        table_free(t);
        sys_close(s);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        {"user stacks have the frames that the kernel's own walk finds", finds_what_the_kernel_finds},
        {"stacks with the same hash stay apart", stays_apart_with_one_hash},
        {"a stack that is taken within another has a place of its own", finds_a_place_when_it_interrupts},
    };
    if (argc != 2)
        return 2;
    own_tool_load(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
