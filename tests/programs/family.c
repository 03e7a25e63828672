/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every function of the malloc family, its errors and odd sizes. Prints each result in a form that does not depend on
 * addresses: with and without the agent the output must be the same.
 *
 *     family [no-pvalloc]
 *
 * no-pvalloc leaves that function out, for jemalloc: it has none, so that without the agent glibc's is called, and
 * jemalloc's free crashes on what that returns.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show(const char *what, void *p, size_t alignment)
{
    printf("%s: %s aligned %d errno %d\n", what, p ? "ok" : "null", p ? (uintptr_t)p % alignment == 0 : -1,
           errno);
    errno = 0;
    free(p);
}

static void *volatile sink;

int main(int argc, char **argv)
{
    size_t huge = PTRDIFF_MAX, max = SIZE_MAX;
    void *p;
    __asm__ volatile("" : "+r"(huge), "+r"(max)); /* the compiler knows too much about these */
    setvbuf(stdout, NULL, _IONBF, 0);
    show("malloc 100", malloc(100), 16);
    show("malloc 0", malloc(0), 8); /* mimalloc 3 aligns less than 16 bytes to 8 */
    show("malloc PTRDIFF_MAX", malloc(huge), 16);
    show("malloc SIZE_MAX", malloc(max), 16);
    show("calloc 10 10", calloc(10, 10), 16);
    show("calloc 0 10", calloc(0, 10), 8);
    show("calloc overflow", calloc(max, 2), 16);
    show("realloc NULL 50", realloc(NULL, 50), 16);
    show("reallocarray NULL 5 50", reallocarray(NULL, 5, 50), 16);
    show("reallocarray overflow", reallocarray(NULL, max, 2), 16);
    p = malloc(64);
    memcpy(p, "kept", 5);
    sink = realloc(p, huge);
    printf("realloc too big: %s errno %d, old block %s\n", sink ? "ok" : "null", errno, (char *)p);
    errno = 0;
    p = realloc(p, 1 << 20);
    printf("realloc bigger: %s\n", (char *)p);
    sink = reallocarray(p, max, 3);
    printf("reallocarray overflow: %s errno %d, old block %s\n", sink ? "ok" : "null", errno, (char *)p);
    errno = 0;
    free(p);
    p = malloc(10);
    sink = realloc(p, 0);
    free(sink);
    p = NULL;
    printf("posix_memalign 64: %d", posix_memalign(&p, 64, 100));
    show("", p, 64);
    p = (void *)16;
    printf("posix_memalign 3: %d", posix_memalign(&p, 3, 100));
    printf(" untouched %d\n", p == (void *)16);
    printf("posix_memalign huge: %d", posix_memalign(&p, 64, huge));
    printf(" untouched %d\n", p == (void *)16);
    show("aligned_alloc 256", aligned_alloc(256, 512), 256);
    show("memalign 1024", memalign(1024, 10), 1024);
    show("valloc", valloc(10), 4096);
    if (argc < 2 || strcmp(argv[1], "no-pvalloc"))
        show("pvalloc", pvalloc(10), 4096);
    p = malloc(1000);
    printf("usable %d\n", malloc_usable_size(p) >= 1000);
    free(p);
    free(NULL);
    return 0;
}
