/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that go through the agent's hands: what lies on the caller's stack, and what the call does, is as without it.
 *
 *     guest_calls flag ROUNDS
 *     guest_calls words MILLISECONDS
 *     guest_calls mlockall-before | mlockall-after
 *
 * flag: a thread waits by syscall(SYS_sched_yield) for a flag on its stack, which another one sets, once; says after
 * how many rounds that took longer than 10 s. words: while one thread calls syscall(SYS_gettid), another is the only
 * one to write to the words above its stack pointer; says how many stores did not last. mlockall: all memory is locked,
 * before anything is allocated or after that; says what the call returned, and the memory in use, in KiB.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 10 /* s */
#define WORDS    2

static long rounds_done;
static _Atomic(atomic_long *) to_be_set;
static double seconds;
static _Atomic(volatile long *) watched;
static _Atomic int stop;
static long stores, undone;
static void *volatile keep;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("");
#endif
}

static void *set_flags(void *arg)
{
    for (unsigned delay = 0;; delay++) {
        atomic_long *flag;
        for (unsigned i = 1; !(flag = atomic_exchange(&to_be_set, NULL)); i++)
            if (i % 1024 == 0)
                sched_yield();
        for (unsigned i = 0; i < delay % 50; i++)
            relax();
        atomic_store(flag, 1);
    }
    return arg;
}

static void give_up(int sig)
{
    (void)sig;
    char line[64];
    int n = snprintf(line, sizeof(line), "rounds %ld\nhung 1\n", rounds_done);
    _exit(write(1, line, (size_t)n) == n ? 0 : 1);
}

__attribute__((noinline)) static void wait_for_flag(void)
{
    atomic_long flag[2] = {0}; /* the first is at the stack pointer, when syscall() is called */
    atomic_store(&to_be_set, flag);
    while (!atomic_load(flag))
        syscall(SYS_sched_yield);
}

static void flags(long rounds)
{
    pthread_t id;
    signal(SIGALRM, give_up);
    if (pthread_create(&id, NULL, set_flags, NULL))
        exit(1);
    for (rounds_done = 0; rounds_done < rounds; rounds_done++) {
        if (rounds_done % 64 == 0)
            alarm(PATIENCE);
        wait_for_flag();
    }
    printf("rounds %ld\nhung 0\n", rounds_done);
}

/* Stores numbers, and looks a moment later whether they are still there. */
static void *write_words(void *arg)
{
    volatile long *word;
    while (!(word = watched))
        relax();
    for (double end = now() + seconds; now() < end;)
        for (int i = 0; i < 1000; i++) {
            stores++;
            for (int k = 0; k < WORDS; k++)
                word[k] = stores;
            for (int k = 0; k < 3; k++)
                relax();
            for (int k = 0; k < WORDS; k++)
                undone += word[k] != stores;
        }
    stop = 1;
    return arg;
}

__attribute__((noinline)) static void call_often(void)
{
    volatile long word[WORDS] = {0};
    watched = word;
    while (!stop)
        syscall(SYS_gettid);
}

static void words(void)
{
    pthread_t id;
    if (pthread_create(&id, NULL, write_words, NULL))
        exit(1);
    call_often();
    pthread_join(id, NULL);
    printf("enough %d\nundone %ld\n", stores > 10000, undone);
}

static long resident_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, "VmRSS:", 6))
            kib = atol(line + 6);
    if (file)
        fclose(file);
    return kib;
}

static void allocate(void)
{
    for (int i = 0; i < 100; i++) {
        keep = malloc(100000);
        free(keep);
    }
    for (int i = 0; i < 1000; i++)
        keep = malloc(100);
}

static void lock_all(int flags)
{
    int returned = mlockall(flags);
    long locked = resident_kib();
    allocate();
    printf("mlockall %d\nlocked %ld\nlater %ld\n", returned, locked, resident_kib());
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? atol(argv[2]) : 0;
    if (!strcmp(how, "flag")) {
        flags(n);
    } else if (!strcmp(how, "words")) {
        seconds = (double)n / 1000;
        words();
    } else if (!strcmp(how, "mlockall-before")) {
        lock_all(MCL_CURRENT | MCL_FUTURE);
    } else if (!strcmp(how, "mlockall-after")) {
        allocate();
        lock_all(MCL_CURRENT);
    } else {
        return 2;
    }
    return 0;
}
