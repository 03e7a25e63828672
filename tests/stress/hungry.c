/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes many small blocks with many different stacks, to fill the books wherever those have little room, and says what
 * it saw itself.
 *
 *     hungry BLOCKS SIZE [BALLAST]
 *
 * First it takes BALLAST bytes of memory and touches them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "many_stacks.h"

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    long blocks = atol(argv[1]), made = 0, failed = 0, wrong = 0;
    size_t size = (size_t)atol(argv[2]);
    size_t ballast = argc > 3 ? (size_t)atol(argv[3]) : 0;
    void *volatile held = ballast ? memset(malloc(ballast), 1, ballast) : NULL;
    unsigned char **block = calloc((size_t)blocks, sizeof(*block));
    if (!block)
        return 1;
    for (long i = 0; i < blocks; i++) {
        block[i] = make(size, (unsigned)i, 12);
        if (block[i])
            memset(block[i], (int)(i & 255), size), made++;
        else
            failed++;
    }
    for (long i = 0; i < blocks; i++)
        for (size_t k = 0; block[i] && k < size; k += size - 1)
            wrong += block[i][k] != (i & 255);
    for (long i = 0; i < blocks; i += 2)
        free(block[i]);
    free(held);
    printf("made %ld\nfailed %ld\nwrong %ld\n", made, failed, wrong);
    return 0;
}
