/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traced WAY N [MORE]: a program whose allocations are traced, and counted by the allocator below (counted_alloc.c).
 * Each image has a slot there; a new one takes the next.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define STACK   (64u << 10)

static volatile int stop;
static int cpus;

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % cpus, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void calls(int n)
{
    for (int i = 0; i < n; i++)
        free(malloc(48));
}

static void *write_events(void *arg)
{
    if (arg)
        pin(0);
    while (!stop)
        calls(16);
    return NULL;
}

static pthread_t threads[THREADS];

static void begin_threads(bool pinned)
{
    for (int k = 0; k < THREADS; k++)
        pthread_create(&threads[k], NULL, write_events, pinned ? threads : NULL);
}

static void end_threads(void)
{
    stop = 1;
    for (int k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
}

static void plain(int n)
{
    calls(n);
}

static void by_threads(int n)
{
    begin_threads(false);
    calls(n);
    end_threads();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(int);
    } ways[] = {{"plain", plain}, {"threads", by_threads}};
    cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (unsigned k = 0; argc > 2 && k < sizeof(ways) / sizeof(*ways); k++)
        if (!strcmp(ways[k].name, argv[1])) {
            ways[k].run(atoi(argv[2]));
            return 0;
        }
    return 2;
}
