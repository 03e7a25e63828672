/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_OUT_OF_MEMORY 125

static void *checked(void *p)
{
    static const char text[] = "allium: out of memory\n";
    if (!p) {
        if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
            _exit(EXIT_OUT_OF_MEMORY);
        _exit(EXIT_OUT_OF_MEMORY);
    }
    return p;
}

void *mem_alloc(size_t bytes)
{
    return checked(calloc(1, bytes ? bytes : 1));
}

void *mem_array(size_t count, size_t bytes)
{
    return checked(calloc(count ? count : 1, bytes ? bytes : 1));
}

void *mem_resize(void *old, size_t bytes)
{
    return checked(realloc(old, bytes ? bytes : 1));
}

void *mem_aligned(size_t alignment, size_t bytes)
{
    void *p;
    return checked(posix_memalign(&p, alignment, bytes) ? NULL : p);
}

char *mem_strdup(const char *text)
{
    return checked(strdup(text));
}

char *mem_strndup(const char *text, size_t len)
{
    return checked(strndup(text, len));
}
