/* SPDX-License-Identifier: BSD-2-Clause */
/* asks COUNT: so many system calls with a path, for each of which the kernel allocates and frees a buffer of 4096
 * bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: asks COUNT\n");
        return 2;
    }
    for (long left = strtol(argv[1], NULL, 10); left > 0; left--)
        if (access("/", F_OK))
            return 1;
    return 0;
}
