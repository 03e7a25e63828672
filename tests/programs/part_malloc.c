/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library that replaces a part of the malloc family, by the C library's functions. With both malloc() and free(), it
 * ends the process if free() gets a block that its malloc() has not made: so do allocators with a heap of their own.
 * A free() alone says at the end whether it was called.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(HAS_MALLOC) && defined(HAS_FREE)
#define HEAD 16
#define MARK 0x6c6c61636f6c6c61
#else
#define HEAD 0
#endif

#ifdef HAS_MALLOC
void *malloc(size_t size)
{
    static void *(*real)(size_t);
    if (!real)
        real = dlsym(RTLD_NEXT, "malloc");
    char *p = size + HEAD < size ? NULL : real(size + HEAD);
#if HEAD
    if (p)
        *(size_t *)p = MARK;
#endif
    return p ? p + HEAD : NULL;
}
#endif

#ifdef HAS_FREE
static unsigned calls;

#if !HEAD
__attribute__((destructor)) static void say(void)
{
    if (calls > 10 && write(1, "free() was called\n", 18) < 0)
        abort();
}
#endif

void free(void *p)
{
    static void (*real)(void *);
    calls++;
    if (!real)
        real = dlsym(RTLD_NEXT, "free");
#if HEAD
    if (p && *(size_t *)((char *)p - HEAD) != MARK)
        abort();
#endif
    real(p ? (char *)p - HEAD : p);
}
#endif
