/* SPDX-License-Identifier: BSD-2-Clause */
/* The floor: what any preloaded library costs that does nothing but pass on. */
#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *p);
void *malloc(size_t size);
void free(void *p);

void *malloc(size_t size)
{
    return __libc_malloc(size);
}

void free(void *p)
{
    __libc_free(p);
}
