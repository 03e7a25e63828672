/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of strings by strdup() and strndup().
 *
 *     copies ROUNDS
 *
 * Each round makes and frees one block of 1000 bytes by each function. Prints what must not depend on the agent.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    char text[1200];
    unsigned wrong = 0;
    memset(text, 'x', sizeof(text));
    text[999] = '\0';
    for (int i = 0, rounds = argc > 1 ? atoi(argv[1]) : 0; i < rounds; i++) {
        char *whole = strdup(text);
        wrong += !whole || strcmp(whole, text) != 0;
        free(whole);
        text[999] = 'x';
        char *part = strndup(text, 999);
        text[999] = '\0';
        wrong += !part || strcmp(part, text) != 0;
        free(part);
    }
    char *shorter = strndup("abc", 100), *empty = strndup("abc", 0);
    printf("%u wrong, '%s', '%s'\n", wrong, shorter, empty);
    free(shorter);
    free(empty);
    return 0;
}
