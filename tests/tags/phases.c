/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a test tells it on standard input, one command a line; "ok" when it is done. Built with -include
 * allium/malloc_hooks.h.
 *
 *     made PLACE N BYTES       place 0 to 7 makes N objects, and keeps them
 *     gone PLACE N             N objects of that place are freed, the last ones first
 *     steady PLACE N BYTES MS  makes and frees N objects each MS milliseconds, until the next line comes; says when,
 *                              and how often
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEPT 100000

static void *kept[8][KEPT];
static unsigned n_kept[8];

#define PLACE(n)                                                                                             \
    static __attribute__((noinline)) void *place_##n(size_t bytes)                                           \
    {                                                                                                        \
        return malloc(bytes);                                                                                \
    }
PLACE(0)
PLACE(1)
PLACE(2)
PLACE(3)
PLACE(4)
PLACE(5)
PLACE(6)
PLACE(7)
static void *(*const places[8])(size_t bytes) = {place_0, place_1, place_2, place_3,
                                                 place_4, place_5, place_6, place_7};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void steady(unsigned place, unsigned n, size_t bytes, unsigned ms)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    uint64_t began = now_ns(), due = began, turns = 0;
    do {
        for (unsigned i = 0; i < n; i++)
            free(places[place](bytes));
        turns++;
        due += ms * 1000000ull;
    } while (!poll(&in, 1, (int)((due > now_ns() ? due - now_ns() : 0) / 1000000)));
    printf("%llu %llu ", (unsigned long long)turns, (unsigned long long)(now_ns() - began));
}

int main(void)
{
    static char in[4096], out[4096];
    char line[200];
    unsigned place, n, ms;
    size_t bytes;
    setvbuf(stdin, in, _IOFBF, sizeof(in));
    setvbuf(stdout, out, _IOFBF, sizeof(out));
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "made %u %u %zu", &place, &n, &bytes) == 3)
            for (unsigned i = 0; i < n; i++)
                kept[place][n_kept[place]++] = places[place](bytes);
        else if (sscanf(line, "gone %u %u", &place, &n) == 2)
            for (unsigned i = 0; i < n; i++)
                free(kept[place][--n_kept[place]]);
        else if (sscanf(line, "steady %u %u %zu %u", &place, &n, &bytes, &ms) == 4)
            steady(place, n, bytes, ms);
        printf("ok\n");
        fflush(stdout);
    }
    return 0;
}
