/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_LIBC_WRAPPERS_H
#define TAG_LIBC_WRAPPERS_H

/*
 * The functions that <allium/malloc_hooks.h> calls instead of libc's. allium_NAME() calls NAME() of libc, and counts
 * what NAME() allocates or frees.
 *
 * Runs in: target. Threads: any.
 */

#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

#include "allium/tag.h"

int allium_asprintf(char **out, const char *format, ...);
int allium_vasprintf(char **out, const char *format, va_list args);
int allium_asprintf_chk(char **out, int flag, const char *format, ...);
int allium_asprintf_checked(char **out, const char *format, ...);
int allium_vasprintf_chk(char **out, int flag, const char *format, va_list args);
ssize_t allium_getline(char **line, size_t *room, FILE *from);
ssize_t allium_getdelim(char **line, size_t *room, int end, FILE *from);
char *allium_realpath(const char *path, char *into);
char *allium_realpath_alias(const char *path, char *into);
wchar_t *allium_wcsdup(const wchar_t *s);
void *allium_malloc(size_t bytes);
void *allium_calloc(size_t count, size_t each);
void *allium_realloc(void *old, size_t bytes);
void allium_free(void *p);
char *allium_strdup(const char *s);
char *allium_strndup(const char *s, size_t most);
void *allium_memalign(size_t alignment, size_t bytes);
void *allium_aligned_alloc(size_t alignment, size_t bytes);
int allium_posix_memalign(void **out, size_t alignment, size_t bytes);
void *allium_reallocarray(void *old, size_t count, size_t each);
void *allium_mmap(struct allium_tag *tag, void *at, size_t bytes, int protection, int flags, int fd,
                  long from);
void *allium_mmap64(void *at, size_t bytes, int protection, int flags, int fd, long from);
int allium_munmap(void *start, size_t bytes);
void *allium_mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...);

#endif
