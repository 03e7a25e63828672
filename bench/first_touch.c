/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * first_touch DEPTH: touches pages that are not there, from so many frames deep; a round for each line on stdin,
 * answered with the CPU time of each fault in ns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGES 4096u
#define PAGE  4096u

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) double touch(volatile char *at, int depth)
{
    if (depth > 0)
        return touch(at, depth - 1) + 0.0 * at[0]; /* no tail call */
    double began = now_ns();
    for (size_t i = 1; i < PAGES; i++)
        at[i * PAGE] = 1;
    return (now_ns() - began) / (PAGES - 1);
}

int main(int argc, char **argv)
{
    int depth = argc > 1 ? atoi(argv[1]) : 0;
    char *at = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 1;
    madvise(at, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
    while (getchar() == '\n') {
        madvise(at, (size_t)PAGES * PAGE, MADV_DONTNEED);
        at[0] = 1;
        printf("%.1f\n", touch(at, depth));
        fflush(stdout);
    }
    return 0;
}
