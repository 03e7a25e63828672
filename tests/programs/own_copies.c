/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An allocator with a strdup() and strndup() of its own, as mimalloc 3 has them: they do not call malloc() through its
 * symbol. With THROUGH_SYMBOL they do, and realloc() calls malloc() and free() so. The blocks are glibc's.
 */
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <string.h>

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t each);
extern void *__libc_realloc(void *old, size_t size), *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *p);

#ifdef THROUGH_SYMBOL
#define MALLOC malloc
#else
#define MALLOC __libc_malloc
#endif

void *malloc(size_t size)
{
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t each)
{
    return __libc_calloc(count, each);
}

void free(void *p)
{
    __libc_free(p);
}

#ifdef THROUGH_SYMBOL
void *realloc(void *old, size_t size)
{
    void *p = size || !old ? malloc(size) : NULL;
    size_t had = old ? malloc_usable_size(old) : 0;
    if (p)
        memcpy(p, old, had < size ? had : size);
    if (p || !size)
        free(old);
    return p;
}
#else
void *realloc(void *old, size_t size)
{
    return __libc_realloc(old, size);
}
#endif

void *memalign(size_t alignment, size_t size)
{
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *p = __libc_memalign(alignment, size);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

char *strndup(const char *s, size_t most)
{
    size_t n = strnlen(s, most);
    char *p = MALLOC(n + 1);
    if (!p)
        return NULL;
    memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

char *strdup(const char *s)
{
    size_t n = strlen(s);
    char *p = MALLOC(n + 1);
    return p ? memcpy(p, s, n + 1) : NULL;
}
