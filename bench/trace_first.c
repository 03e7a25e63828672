/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the ns of CPU time of the first malloc() of a thread that has just begun, in a fork child whose parent has
 * written no event yet: the child makes its ledger and its rings. Prints the same of the second malloc().
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double timed(void)
{
    const double began = cpu_ns();
    void *volatile p = malloc(16);
    const double took = cpu_ns() - began;
    return p ? took : 0;
}

int main(void)
{
    for (int i = 0; i < 21; i++) {
        if (!fork()) {
            cpu_ns();
            const double first = timed(), second = timed();
            dprintf(1, "%.0f %.0f\n", first, second);
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}
