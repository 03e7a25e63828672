/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocates and frees 16 bytes at a steady rate, so that a trace has two events for each pair. Prints the pairs.
 *
 *     trace_pace PAIRS_PER_SECOND SECONDS
 */
#include <stdio.h>
#include <stdlib.h>

#include "stats.h"

#define BURST_NS 100000.0

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const double rate = atof(argv[1]), began = stats_now_ns(), end = began + atof(argv[2]) * 1e9;
    unsigned long done = 0;
    for (double now = began; now < end; now = stats_now_ns()) {
        const double due = (now - began) * rate / 1e9;
        for (; (double)done < due; done++) {
            void *volatile p = malloc(16);
            free(p);
        }
        while (stats_now_ns() < now + BURST_NS)
            ;
    }
    printf("%lu\n", done);
    return 0;
}
