/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does what the probes tell of, and says so itself: one line for each call, of its addresses and sizes in hexadecimal.
 *
 *     told calls          each way to allocate, move and free
 *     told many N         N blocks of 1 to 1024 bytes, of which some are held at a time; prints their bytes
 *     told threads N      the same in four threads at once
 *     told fork           a child frees what it inherited, and allocates and frees some of its own
 *     told rounds         for each byte of input 100 pairs of malloc and free, then a line "done"
 *
 * What it prints goes past stdio, which would allocate.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *format, ...)
{
    char line[128];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (write(1, line, (size_t)n) != n)
        _exit(1);
}

static void *made(const char *call, void *p, size_t size)
{
    say("%s %lx %zx\n", call, (unsigned long)p, size);
    return p;
}

static void drop(void *p, size_t size)
{
    say("free %lx %zx\n", (unsigned long)p, size);
    free(p);
}

static void *moved(uintptr_t old, size_t old_size, void *p, size_t size)
{
    say("realloc %lx %zx %lx %zx\n", (unsigned long)p, size, (unsigned long)old, old_size);
    return p;
}

static void reallocs(void)
{
    size_t huge = PTRDIFF_MAX;
    __asm__ volatile("" : "+r"(huge)); /* the compiler knows too much about it */
    void *p = moved(0, 0, realloc(NULL, 211), 211);
    p = moved((uintptr_t)p, 211, realloc(p, 200), 200);
    p = moved((uintptr_t)p, 200, realloc(p, 100003), 100003);
    if (realloc(p, huge))
        _exit(1);
    say("failed %lx %x\n", (unsigned long)p, 100003);
    p = moved((uintptr_t)p, 100003, reallocarray(p, 7, 31), 7 * 31);
    uintptr_t old = (uintptr_t)p;
    moved(old, 7 * 31, realloc(p, 0), 0);
}

static void calls(void)
{
    void *p = NULL;
    drop(made("malloc", malloc(101), 101), 101);
    drop(made("malloc", malloc(0), 0), 0);
    drop(made("calloc", calloc(3, 37), 3 * 37), 3 * 37);
    if (posix_memalign(&p, 64, 103))
        _exit(1);
    drop(made("malloc", p, 103), 103);
    drop(made("malloc", aligned_alloc(256, 512), 512), 512);
    drop(made("malloc", memalign(1024, 107), 107), 107);
    drop(made("malloc", valloc(109), 109), 109);
    drop(made("malloc", pvalloc(113), 113), 113);
    reallocs();
    free(NULL);
}

/* In an order that repeats itself after 2^64. */
static void many(long n)
{
    enum { HELD = 64 };
    void *held[HELD] = {NULL};
    uint64_t bytes = 0, state = 1;
    for (long i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t size = (state >> 33 & 1023) + 1;
        free(held[i % HELD]);
        held[i % HELD] = malloc(size);
        bytes += size;
    }
    for (int i = 0; i < HELD; i++)
        free(held[i]);
    say("bytes %llu\n", (unsigned long long)bytes);
}

static void *many_too(void *n)
{
    many(*(long *)n);
    return NULL;
}

static void in_threads(long n)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, many_too, &n))
            _exit(1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void forked(void)
{
    void *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = malloc(100);
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < 50; i++)
            free(blocks[i]);
        many(1000);
        _exit(0);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        _exit(1);
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
}

static void rounds(void)
{
    char byte;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* gdb need not be our parent */
    say("ready\n");
    while (read(0, &byte, 1) > 0) {
        for (int i = 0; i < 100; i++) {
            void *p = malloc(100);
            __asm__ volatile("" ::"r"(p) : "memory");
            free(p);
        }
        say("done\n");
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "calls"))
        calls();
    else if (!strcmp(what, "many") && argc > 2)
        many(strtol(argv[2], NULL, 10));
    else if (!strcmp(what, "threads") && argc > 2)
        in_threads(strtol(argv[2], NULL, 10));
    else if (!strcmp(what, "fork"))
        forked();
    else if (!strcmp(what, "rounds"))
        rounds();
    else
        return 2;
    return 0;
}
