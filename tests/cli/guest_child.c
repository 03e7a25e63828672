/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that is started by others: says so, with one allocation, and ends with 7. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    void *volatile p = malloc(1000);
    const char *set = getenv("LD_PRELOAD");
    if (!p || argv[argc - 1][0] != 'a' || write(1, set ? "with\n" : "without\n", set ? 5 : 8) < 0)
        return 1;
    free(p);
    return 7;
}
