/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocates by functions that count, and says at the end what they have counted, one line for each: "one" in four
 * threads, "two" in signal handlers that interrupt these, "three" in fork children that kill themselves, "four" in a
 * program that a child executes. Each line: the name, the number of requests, the sum of the sizes, the smallest, the
 * largest. Then it kills itself. With the argument "calm", there are no signals, threads and children.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLAIN __attribute__((noinline))

enum { ONE, TWO, THREE, FOUR, KINDS };
struct counts {
    uint64_t n, low, high, least, most;
};
static struct counts *counts; /* shared with children */

static void count(int kind, uint64_t size)
{
    struct counts *c = &counts[kind];
    const uint64_t before = __atomic_fetch_add(&c->low, size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->high, before + size < before, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->n, 1, __ATOMIC_RELAXED);
    uint64_t now = __atomic_load_n(&c->most, __ATOMIC_RELAXED);
    while (now < size &&
           !__atomic_compare_exchange_n(&c->most, &now, size, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    now = __atomic_load_n(&c->least, __ATOMIC_RELAXED);
    while ((!now || now > size) &&
           !__atomic_compare_exchange_n(&c->least, &now, size, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

#define ALLOCATES(name, kind)                                                                                \
    static PLAIN void *name(size_t size)                                                                     \
    {                                                                                                        \
        void *volatile p = malloc(size);                                                                     \
        count(kind, size);                                                                                   \
        return p;                                                                                            \
    }
ALLOCATES(one, ONE)
ALLOCATES(two, TWO)
ALLOCATES(three, THREE)
ALLOCATES(four, FOUR)

static void *work(void *arg)
{
    uint64_t random = (uintptr_t)arg + 1;
    for (int i = 0; i < 50000; i++) {
        random = random * 6364136223846793005u + 1;
        free(one((1 + (random >> 33) % 16) << (random >> 60))); /* few sizes: each has a row */
    }
    return NULL;
}

/* libc refuses such a size before it takes a lock. */
static void handler(int sig)
{
    (void)sig;
    static volatile size_t huge = (size_t)1 << 63 | 5;
    free(two(huge));
}

static void make_children(const char *self)
{
    for (int i = 0; i < 5; i++)
        if (!fork()) {
            for (int k = 0; k < 1000; k++)
                free(three((size_t)(k + 1)));
            raise(SIGKILL);
        }
    if (!fork())
        execl(self, self, "executed", (char *)NULL);
    while (wait(NULL) > 0)
        ;
}

static void say(void)
{
    static const char *const names[KINDS] = {"one", "two", "three", "four"};
    for (int i = 0; i < KINDS; i++) {
        char line[200];
        const struct counts *c = &counts[i];
        const int n =
            snprintf(line, sizeof(line), "%s %llu %llu %llu %llu %llu\n", names[i], (unsigned long long)c->n,
                     (unsigned long long)c->high, (unsigned long long)c->low, (unsigned long long)c->least,
                     (unsigned long long)c->most);
        if (write(STDOUT_FILENO, line, (size_t)n) != n)
            _exit(1);
    }
}

int main(int argc, char **argv)
{
    const int calm = argc > 1 && !strcmp(argv[1], "calm");
    /* a file that the executed program inherits */
    const char *file = getenv("COUNTS");
    FILE *f = file ? fopen(file, "r+") : tmpfile();
    if (!f || ftruncate(fileno(f), KINDS * sizeof(*counts)))
        return 1;
    counts = mmap(NULL, KINDS * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    if (argc > 1 && !strcmp(argv[1], "executed")) {
        for (int i = 0; i < 500; i++)
            free(four((size_t)(i % 3 + 1000)));
        return 0;
    }
    if (calm) {
        work(NULL);
        return 0;
    }
    pthread_t threads[4];
    const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, NULL);
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (struct timespec a_while = {0, 1000000}; !counts[TWO].n;)
        nanosleep(&a_while, NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    make_children(argv[0]);
    say();
    raise(SIGKILL);
}
