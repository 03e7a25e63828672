/* SPDX-License-Identifier: BSD-2-Clause */
/* allocates COUNT BYTES: so many objects of that size, never freed; ends with 7. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: allocates COUNT BYTES\n");
        return 2;
    }
    size_t bytes = strtoul(argv[2], NULL, 10);
    for (long left = strtol(argv[1], NULL, 10); left > 0; left--)
        if (!malloc(bytes))
            return 2;
    return 7;
}
