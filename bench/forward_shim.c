/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The floor: what any preloaded library costs that does nothing but pass on. To glibc; or, with FORWARD_TO_NEXT, to
 * whatever allocator the program brings along.
 */
#include <dlfcn.h>
#include <stddef.h>

#ifdef FORWARD_TO_NEXT
#define FORWARD(result, name, parameters, arguments)                                                         \
    result name parameters                                                                                   \
    {                                                                                                        \
        static result(*next) parameters;                                                                     \
        if (__builtin_expect(!next, 0))                                                                      \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                                                       \
        return next arguments;                                                                               \
    }
#else
#define FORWARD(result, name, parameters, arguments)                                                         \
    extern result __libc_##name parameters;                                                                  \
    result name parameters                                                                                   \
    {                                                                                                        \
        return __libc_##name arguments;                                                                      \
    }
#endif

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *p, size_t size);
void free(void *p);

FORWARD(void *, malloc, (size_t size), (size))
FORWARD(void *, calloc, (size_t count, size_t size), (count, size))
FORWARD(void *, realloc, (void *p, size_t size), (p, size))
FORWARD(void, free, (void *p), (p))
