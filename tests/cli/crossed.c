/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crossed ring | pairs: allocates 2,000 objects of one size in one place, in a heap that holds few of them at once.
 * ring: the oldest of eight is freed before each allocation, so that none is temporary.
 * pairs: two are allocated, the second is freed, then the first: every other object is temporary.
 */
#include <stdlib.h>
#include <string.h>

#define OBJECTS 2000
#define RING    8
#define BYTES   100

int main(int argc, char **argv)
{
    void *held[RING] = {NULL};
    int held_at_once = argc > 1 && !strcmp(argv[1], "ring") ? RING : 2;
    for (int i = 0; i < OBJECTS; i++) {
        int slot = i % held_at_once;
        if (held_at_once == RING)
            free(held[slot]);
        held[slot] = malloc(BYTES);
        if (held_at_once == 2 && slot == 1) {
            free(held[1]);
            free(held[0]);
        }
    }
    for (int i = 0; held_at_once == RING && i < RING; i++)
        free(held[i]);
    return 0;
}
