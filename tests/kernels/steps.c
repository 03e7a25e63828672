/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps N: touches N new pages, maps and unmaps N times, sleeps N times, opens N pipes: each between two allocations of
 * its own size, 10001 and 10002, 20001 and 20002 and so on. Prints what the kernel counts of it for the process.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static long rounds;

static void mark(size_t size)
{
    free(malloc(size));
}

static struct rusage usage(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u;
}

static void *map(long pages)
{
    return mmap(NULL, 4096 * (size_t)pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* On another CPU the agent would make room for that CPU's events. */
static void stay(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    mark(10000);
}

static void fault(void)
{
    stay();
    volatile char *pages = map(rounds);
    madvise((void *)pages, 4096 * (size_t)rounds, MADV_NOHUGEPAGE);
    mark(10001);
    const struct rusage before = usage();
    for (long i = 0; i < rounds; i++)
        pages[4096 * i] = 1;
    const struct rusage after = usage();
    mark(10002);
    printf("faults %ld\npages %lu\n", after.ru_minflt - before.ru_minflt, (unsigned long)pages);
}

static void remap(void)
{
    mark(20001);
    for (long i = 0; i < rounds; i++)
        munmap(map(1), 4096);
    mark(20002);
}

static void nap(void)
{
    mark(30001);
    const struct rusage before = usage();
    for (long i = 0; i < rounds; i++)
        usleep(100);
    const struct rusage after = usage();
    mark(30002);
    printf("switches %ld\n", after.ru_nvcsw - before.ru_nvcsw + after.ru_nivcsw - before.ru_nivcsw);
}

static void open_pipes(void)
{
    int ends[2];
    mark(40001);
    for (long i = 0; i < rounds; i++) {
        if (pipe(ends) || write(ends[1], "x", 1) != 1)
            abort();
        close(ends[0]);
        close(ends[1]);
    }
    mark(40002);
}

int main(int argc, char **argv)
{
    rounds = argc == 2 ? atol(argv[1]) : 0;
    mark(30000); /* what the marks need is there */
    usage();
    fault();
    remap();
    nap();
    open_pipes();
    return 0;
}
