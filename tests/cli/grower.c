/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose growth is known: grower MIB STEPS PAUSE. It takes MIB from settle(), in blocks of 128 KiB less 64
 * bytes, and says "settled". Then, STEPS times, it leaks 16 blocks of 4096 bytes from leak(), and replaces 16 of the
 * same size in turn() and one large one in shift(). Before each PAUSE steps (0: never) it waits for a byte of input,
 * and after them says "paused". At the end it says "grown" and waits for its input to end. Built with -DNEWER it also
 * takes 64 blocks of 4096 bytes from added().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE (128 * 1024 - 64)
#define SMALL 4096
#define EACH  16

static void *volatile kept; /* the head of a list, so that nothing is optimised away */
static void *turned[EACH], *shifted;

static void keep(void **block)
{
    *block = kept;
    kept = block;
}

__attribute__((noinline)) static void settle(long mib)
{
    for (long bytes = 0; bytes < mib << 20; bytes += LARGE)
        keep(malloc(LARGE));
}

__attribute__((noinline)) static void leak(void)
{
    for (int i = 0; i < EACH; i++)
        keep(malloc(SMALL));
}

__attribute__((noinline)) static void turn(void)
{
    for (int i = 0; i < EACH; i++) {
        free(turned[i]);
        turned[i] = malloc(SMALL);
    }
}

__attribute__((noinline)) static void shift(void)
{
    free(shifted);
    shifted = malloc(LARGE);
}

#ifdef NEWER
__attribute__((noinline)) static void added(void)
{
    for (int i = 0; i < 64; i++)
        keep(malloc(SMALL));
}
#endif

static void say(const char *word)
{
    if (write(1, word, strlen(word)) < 0)
        exit(1);
}

int main(int argc, char **argv)
{
    long mib = argc > 1 ? atol(argv[1]) : 1, steps = argc > 2 ? atol(argv[2]) : 0;
    long pause = argc > 3 ? atol(argv[3]) : 0;
    char c;
    settle(mib);
#ifdef NEWER
    added();
#endif
    turn();
    shift();
    say("settled\n");
    for (long i = 0; i < steps; i++) {
        if (pause && i % pause == 0 && read(0, &c, 1) != 1)
            return 1;
        leak();
        turn();
        shift();
        if (pause && (i + 1) % pause == 0)
            say("paused\n");
    }
    say("grown\n");
    while (read(0, &c, 1) > 0)
        ;
    return 0;
}
