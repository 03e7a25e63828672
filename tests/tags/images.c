/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocates, and becomes another program of the same process id, which allocates elsewhere. */
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept;

__attribute__((noinline)) static void before(void)
{
    kept = malloc(100);
}
__attribute__((noinline)) static void after(void)
{
    kept = malloc(200);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        after();
        return 0;
    }
    before();
    return execl(argv[0], argv[0], "again", (char *)NULL);
}
