/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that is started by others: makes one allocation, prints its environment, and ends with 7. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef OWN_MALLOC
static char arena[1 << 20] __attribute__((aligned(16)));
static size_t used;

void *malloc(size_t size)
{
    void *p = arena + used;
    used += (size + 15) & ~(size_t)15;
    return p;
}

void free(void *p)
{
    (void)p;
}
#endif

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
