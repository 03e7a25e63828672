/* SPDX-License-Identifier: BSD-2-Clause */
/* sys_calls N: opens and closes /dev/null N times, and prints how many nanoseconds of CPU time one such pair took. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    long n = argc == 2 ? atol(argv[1]) : 0;
    double began = cpu_ns();
    for (long i = 0; i < n; i++)
        close(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (n > 0)
        printf("%.2f\n", (cpu_ns() - began) / (double)n);
    return n > 0 ? 0 : 2;
}
