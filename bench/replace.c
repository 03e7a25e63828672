/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LIVE objects of 16-47 bytes, replaced in random order by one thread. Prints the CPU time of one replacement, in ns,
 * when all objects are there.
 *
 *     replace LIVE REPLACEMENTS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *object(uint64_t draw)
{
    char *p = malloc(16 + (draw >> 59));
    if (!p)
        abort();
    *(volatile char *)p = 1;
    return p;
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    uint64_t live = strtoull(argv[1], NULL, 10), replacements = strtoull(argv[2], NULL, 10), draw = live;
    void **objects = calloc(live, sizeof(*objects));
    if (!objects || !live)
        return 1;
    for (uint64_t i = 0; i < live; i++)
        objects[i] = object(draw = draw * 6364136223846793005u + 1442695040888963407u);
    double before = cpu_ns();
    for (uint64_t n = replacements; n; n--) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        void **place = &objects[(draw >> 20) % live];
        free(*place);
        *place = object(draw);
    }
    printf("%.2f\n", (cpu_ns() - before) / (double)replacements);
    return 0;
}
