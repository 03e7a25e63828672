/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the time in ns of the first large malloc of a process, for which the agent creates the ledger, and of the
 * second one. The agent samples both.
 */
#include <stdio.h>
#include <stdlib.h>

#include "stats.h"

#define BYTES (8u << 20) /* at the default period all but one of nine million are samples */

static double timed(void)
{
    double began = stats_now_ns();
    void *volatile p = malloc(BYTES);
    double took = stats_now_ns() - began;
    return p ? took : 0;
}

int main(void)
{
    stats_now_ns(); /* the first call of clock_gettime is bound now */
    double first = timed(), second = timed();
    printf("%.0f %.0f\n", first, second);
    return 0;
}
