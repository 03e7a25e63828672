/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_MEM_H
#define BASE_MEM_H

/*
 * Heap memory for the tool. The result is never NULL: without memory the tool prints one line on stderr and
 * exits with code 125.
 *
 * Runs in: the tool only; code in a target never links this.
 * Owns: nothing; the caller frees the memory with free(3).
 */

#include <stddef.h>

void *mem_alloc(size_t bytes);                     /* zeroed */
void *mem_array(size_t count, size_t bytes);       /* zeroed; overflow is treated as exhaustion */
void *mem_resize(void *old, size_t bytes);         /* as realloc; the added part is not zeroed */
void *mem_aligned(size_t alignment, size_t bytes); /* not zeroed; a power of two, 8 at least */
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t len);

#endif
