/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/base/guard: what returns has done its work, what does not is left behind, and nobody waits for it.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/guard.h"

#define LONG_MS 600000 /* for what returns: however loaded the machine is */

struct sum {
    int a, b, result;
    int pipe[2];
};

static void add(void *work)
{
    struct sum *s = work;
    s->result = s->a + s->b;
}

/* Returns when somebody has written. */
static void wait_and_add(void *work)
{
    struct sum *s = work;
    char c;
    if (read(s->pipe[0], &c, 1) == 1)
        add(work);
    if (write(s->pipe[1], "d", 1) != 1)
        s->result = -1;
}

static void returned(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct sum s = {.a = i, .b = 1};
        assert_int_equal(guard_run(add, &s, sizeof(s), LONG_MS), 0);
        assert_int_equal(s.result, i + 1);
    }
}

static void left_behind(void **state)
{
    (void)state;
    int in[2], out[2];
    char c;
    assert_int_equal(pipe(in) | pipe(out), 0);
    for (int i = 0; i < 3; i++) {
        struct sum s = {.a = 1, .b = 2, .result = 7, .pipe = {in[0], out[1]}};
        assert_int_equal(guard_run(wait_and_add, &s, sizeof(s), 20), -ETIMEDOUT);
        assert_int_equal(s.result, 7);
        assert_int_equal(guard_run(add, &s, sizeof(s), LONG_MS), 0);
        assert_int_equal(s.result, 3);
    }
    /* What comes back late finds what it was given, and changes nothing of ours. */
    assert_int_equal(write(in[1], "abc", 3), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(read(out[0], &c, 1), 1);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Works all the time, far longer than it is given. */
static void toil_and_add(void *work)
{
    for (uint64_t end = now_ms() + 200; now_ms() < end;)
        ;
    add(work);
}

static void delayed(void **state)
{
    (void)state;
    struct sum s = {.a = 1, .b = 2};
    assert_int_equal(guard_run(toil_and_add, &s, sizeof(s), 5), 0);
    assert_int_equal(s.result, 3);
}

static volatile sig_atomic_t got;

static void note(int number)
{
    got = number;
}

static void raise_one(void *work)
{
    (void)work;
    kill(getpid(), SIGUSR1);
}

static void signals(void **state)
{
    (void)state;
    struct sum s = {0};
    sigset_t mask;
    signal(SIGUSR1, note);
    assert_int_equal(guard_run(raise_one, &s, sizeof(s), LONG_MS), 0);
    assert_int_equal(got, SIGUSR1);
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    assert_int_equal(sigismember(&mask, SIGUSR1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"what returns has done its work", returned, NULL, NULL, NULL},
        {"what does not return is left behind", left_behind, NULL, NULL, NULL},
        {"what waits for nothing but a processor is not left behind", delayed, NULL, NULL, NULL},
        {"signals are the caller's", signals, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
