/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with a heap that is known: it holds 100 blocks of 10,000 bytes from hold(), frees 50 of 20,000 from
 * waste(), says "ready", and waits for its input to end (or as many milliseconds as the argument says).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *volatile held[100];

__attribute__((noinline)) static void hold(void)
{
    for (int i = 0; i < 100; i++)
        held[i] = malloc(10000);
}

__attribute__((noinline)) static void waste(void)
{
    for (int i = 0; i < 50; i++) {
        void *volatile p = malloc(20000);
        free(p);
    }
}

int main(int argc, char **argv)
{
    char c;
    hold();
    waste();
    if (write(1, "ready\n", 6) != 6)
        return 1;
    if (argc > 1) {
        long ms = atol(argv[1]);
        struct timespec t = {ms / 1000, ms % 1000 * 1000000};
        nanosleep(&t, NULL);
        return 0;
    }
    while (read(0, &c, 1) > 0)
        ;
    return 0;
}
