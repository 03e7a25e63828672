/* SPDX-License-Identifier: BSD-2-Clause */
/* sys_calls N: opens and closes /dev/null N times, and prints how many nanoseconds one such pair took. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stats.h"

int main(int argc, char **argv)
{
    long n = argc == 2 ? atol(argv[1]) : 0;
    double began = stats_now_ns();
    for (long i = 0; i < n; i++)
        close(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (n > 0)
        printf("%.2f\n", (stats_now_ns() - began) / (double)n);
    return n > 0 ? 0 : 2;
}
