/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sys_malloc: a process that allocates what it is told by lines on stdin, and answers each with a line:
 *
 *   pairs N       malloc(64) and free(): ns of CPU time of a pair
 *   mix N         malloc(), calloc(), realloc() and two calls of free(): ns of all five
 *   pace N MS     N pairs a second, in bursts of a millisecond, for so long: percent of a CPU
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *volatile kept;

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pair(void)
{
    kept = malloc(64);
    free(kept);
}

static void mix(void)
{
    void *a = malloc(64), *b = calloc(3, 32);
    a = realloc(a, 200);
    kept = a;
    free(a);
    kept = b;
    free(b);
}

static double each(void (*work)(void), unsigned n)
{
    const double began = now(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < n; i++)
        work();
    return (now(CLOCK_THREAD_CPUTIME_ID) - began) / n;
}

static double pace(unsigned n, unsigned ms)
{
    const double cpu = now(CLOCK_PROCESS_CPUTIME_ID), began = now(CLOCK_MONOTONIC);
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (unsigned i = 0; i < ms; i++) {
        for (unsigned j = 0; j < n / 1000; j++)
            pair();
        next.tv_nsec += 1000000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return 100 * (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (now(CLOCK_MONOTONIC) - began);
}

int main(void)
{
    char line[64];
    unsigned n, ms;
    while (fgets(line, sizeof(line), stdin)) {
        double answer = 0;
        if (sscanf(line, "pairs %u", &n) == 1)
            answer = each(pair, n);
        else if (sscanf(line, "mix %u", &n) == 1)
            answer = each(mix, n);
        else if (sscanf(line, "pace %u %u", &n, &ms) == 2)
            answer = pace(n, ms);
        printf("%.3f\n", answer);
        fflush(stdout);
    }
    return 0;
}
