/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that is started by others: makes one allocation, prints its environment, and ends with 7. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
    void *volatile p = malloc(1000);
    if (!p || argv[argc - 1][0] != 'a')
        return 1;
    for (char **variable = environ; *variable; variable++)
        dprintf(1, "%s\n", *variable);
    free(p);
    return 7;
}
