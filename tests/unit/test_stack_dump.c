/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/captured: a stack of this program, taken as the kernel takes them, walked by the rules of its files;
 * against the return addresses that each function told itself. Then what nobody would take: wrong bytes, missing pages,
 * a rule that is not the place's own.
 */
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/unwind/stack_dump.h"

#define DEPTH      12
#define FRAMES_MAX 64
#define TAKEN      65536u

extern void *__libc_stack_end;

static struct stack_dump taken;
static unsigned char bytes[TAKEN];
static uint64_t truth[DEPTH + 1]; /* return addresses: take()'s, then go_down()'s, outermost first */
static volatile int sink;

/* Whole frames, with what lies between their objects: a sanitizer would object. */
static __attribute__((noinline, no_sanitize("address", "thread"))) void
copy_frames(const volatile unsigned char *from, size_t length)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = from[i];
}

static __attribute__((noinline)) void take(void)
{
    regs_capture(taken.regs);
    size_t length = (uintptr_t)__libc_stack_end - taken.regs[REG_RSP];
    length = length < TAKEN ? length : TAKEN;
    taken.run[0] = (struct stack_dump_run){.from = taken.regs[REG_RSP], .bytes = length, .data = bytes};
    copy_frames((const unsigned char *)taken.regs[REG_RSP], length);
    truth[0] = (uint64_t)__builtin_return_address(0);
}

static __attribute__((noinline)) void go_down(int left)
{
    char room[100];
    memset(room, left, sizeof(room));
    truth[DEPTH - left] = (uint64_t)__builtin_return_address(0);
    if (left)
        go_down(left - 1);
    else
        take();
    sink = sink + room[left];
}

/* ---- where code lies: in this program's files, as the loader knows them ---- */

struct seek {
    uint64_t pc, shift; /* the latter: what to be wrong by */
    struct stack_dump_code code;
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    static struct dso *files[32];
    static const char *names[32];
    struct seek *s = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_LOAD || s->pc - info->dlpi_addr - ph->p_vaddr >= ph->p_memsz)
            continue;
        const char *name = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
        for (int k = 0; k < 32; k++) {
            if (!names[k]) {
                names[k] = strdup(name);
                files[k] = dso_open("", name, 0);
            }
            if (!strcmp(names[k], name)) {
                s->code = (struct stack_dump_code){files[k], s->pc - info->dlpi_addr + s->shift};
                return 1;
            }
        }
    }
    return 0;
}

static struct stack_dump_code find(void *arg, uint64_t pc)
{
    struct seek s = {.pc = pc, .shift = arg ? *(uint64_t *)arg : 0};
    dl_iterate_phdr(look, &s);
    return s.code;
}

static void take_once(void)
{
    if (!taken.run[0].bytes)
        go_down(DEPTH - 1);
}

/* How many of the frames, from the outermost that is known inwards, are those that the functions told. */
static size_t right(const struct stack_dump_frame *frames, size_t n)
{
    size_t at = 0, count = 0;
    while (at < n && frames[at].pc != truth[0])
        at++;
    for (; at < n && count <= DEPTH && frames[at].pc == truth[count ? DEPTH + 1 - count : 0]; at++)
        count++;
    return count;
}

static void walks(void **state)
{
    struct stack_dump_frame frames[FRAMES_MAX];
    enum stack_dump_end end;
    (void)state;
    take_once();
    size_t n = stack_dump_walk(&taken, find, NULL, frames, FRAMES_MAX, &end);
    assert_true(n > DEPTH);
    assert_int_equal(end, STACK_DUMP_WHOLE);
    assert_true(frames[0].exact);
    assert_false(frames[1].exact);
    assert_int_equal(right(frames, n), DEPTH + 1);
    assert_int_equal(stack_dump_walk(&taken, find, NULL, frames, 5, &end), 5);
    assert_int_equal(end, STACK_DUMP_DEEP);
}

static void a_wrong_rule_is_found(void **state)
{
    struct stack_dump_frame frames[FRAMES_MAX];
    enum stack_dump_end end;
    uint64_t shift = 64; /* the rules of other places */
    (void)state;
    take_once();
    size_t n = stack_dump_walk(&taken, find, &shift, frames, FRAMES_MAX, &end);
    assert_true(right(frames, n) < DEPTH + 1 || end != STACK_DUMP_WHOLE);
}

static void what_is_missing_is_said(void **state)
{
    struct stack_dump_frame frames[FRAMES_MAX];
    enum stack_dump_end end;
    (void)state;
    take_once();
    struct stack_dump cut = taken;
    cut.run[0].bytes = 256;
    size_t n = stack_dump_walk(&cut, find, NULL, frames, FRAMES_MAX, &end);
    assert_int_equal(end, STACK_DUMP_CUT);
    assert_true(n > 1 && n < DEPTH);
    struct stack_dump holes = taken;
    holes.run[0].missing = ~1u; /* all but the first page */
    holes.run[0].missing |= 1;
    stack_dump_walk(&holes, find, NULL, frames, FRAMES_MAX, &end);
    assert_int_equal(end, STACK_DUMP_UNREADABLE);
    struct stack_dump none = {.regs = {0}};
    assert_int_equal(stack_dump_walk(&none, find, NULL, frames, FRAMES_MAX, &end), 0);
    none.regs[REG_RA] = 1;
    assert_int_equal(stack_dump_walk(&none, find, NULL, frames, FRAMES_MAX, &end), 1);
    assert_int_equal(end, STACK_DUMP_NO_FILE);
}

/* Bytes and registers at random: it ends, within its room, and reads nothing that was not taken (sanitizers look). */
static void hostile(void **state)
{
    struct stack_dump_frame frames[FRAMES_MAX];
    unsigned seed = 20261122;
    unsigned whole = 0;
    (void)state;
    take_once();
    for (int i = 0; i < 20000; i++) {
        enum stack_dump_end end;
        size_t length = 8 + (size_t)rand_r(&seed) % 4000;
        unsigned char *copy = malloc(length);
        struct stack_dump c = taken;
        memcpy(copy, bytes, length);
        for (int k = rand_r(&seed) % 8; k > 0; k--)
            copy[(size_t)rand_r(&seed) % length] = (unsigned char)rand_r(&seed);
        if (rand_r(&seed) % 4 == 0)
            c.regs[rand_r(&seed) % REG_COUNT] += (uint64_t)(rand_r(&seed) % 4096) - 2048;
        if (rand_r(&seed) % 16 == 0)
            c.run[0].from = UINT64_MAX - (uint64_t)(rand_r(&seed) % 64);
        c.run[0].missing = rand_r(&seed) % 8 ? 0 : (uint32_t)rand_r(&seed);
        c.run[0].bytes = length;
        c.run[0].data = copy;
        size_t n = stack_dump_walk(&c, find, NULL, frames, FRAMES_MAX, &end);
        assert_true(n <= FRAMES_MAX && end < STACK_DUMP_ENDS);
        whole += end == STACK_DUMP_WHOLE;
        free(copy);
    }
    assert_true(whole < 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks),
        cmocka_unit_test(a_wrong_rule_is_found),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
