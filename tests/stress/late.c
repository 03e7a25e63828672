/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says "before", and for each line of its input makes one block of as many bytes as the line says, and says "made" or
 * "failed". The blocks are kept and not touched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept;

int main(void)
{
    char line[32];
    static char buffer[4096];
    setvbuf(stdin, buffer, _IOFBF, sizeof(buffer));
    if (write(1, "before\n", 7) != 7)
        return 1;
    while (fgets(line, sizeof(line), stdin)) {
        kept = malloc(strtoull(line, NULL, 10));
        if (write(1, kept ? "made\n" : "failed\n", kept ? 5 : 7) < 0)
            return 1;
    }
    return 0;
}
