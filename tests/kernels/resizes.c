/* SPDX-License-Identifier: BSD-2-Clause */
/* resizes COUNT: makes a pipe of 1 MiB so many times, and each time one of a page again. The kernel has 40 bytes for
 * each page of a pipe. So for 1 MiB it allocates 10240 bytes, in four pages. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int ends[2];
    if (argc != 2 || pipe(ends)) {
        fprintf(stderr, "usage: resizes COUNT\n");
        return 2;
    }
    for (long left = strtol(argv[1], NULL, 10); left > 0; left--)
        if (fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) < 0 || fcntl(ends[1], F_SETPIPE_SZ, 4096) < 0)
            return 1;
    return 0;
}
