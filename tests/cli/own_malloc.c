/* SPDX-License-Identifier: BSD-2-Clause */
/* A program with an allocator of its own, called MALLOC: nothing of it may be shown as an empty heap without a word. */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static char arena[64 << 20] __attribute__((aligned(16)));
static size_t used;

void *MALLOC(size_t size);

void *MALLOC(size_t size)
{
    void *p = arena + used;
    used += (size + 15) & ~(size_t)15;
    return p;
}

int main(void)
{
    volatile char *p = MALLOC(10 << 20);
    p[1 << 20] = 1;
    return write(1, "done\n", 5) != 5;
}
