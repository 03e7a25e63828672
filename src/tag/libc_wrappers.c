/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions to which <allium/malloc_hooks.h> renames calls that it cannot replace by inline code: libc has inline
 * versions, the function has variable arguments, or the source may use the name for itself. callsite_tag() finds the
 * tag of a call by its return address.
 *
 * Runs in: target. Threads: any.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "tag/callsite_tags.h"
#include "tag/libc_wrappers.h"
#include "tag/tag_internal.h"

/* The tag of the call that has entered `function`, which uses this macro; class: "malloc", name: `name`. */
#define CALLER(function, name)                                                                               \
    callsite_tag(__builtin_extract_return_addr(__builtin_return_address(0)), (const void *)(function),       \
                 "malloc\0" name "\0")

int __vasprintf_chk(char **, int, const char *, va_list);

/*
 * Called before the real function. False: fault injection makes the request fail, with errno ENOMEM. If `tag` is NULL,
 * the library has no room for a tag, and does not count the call.
 */
static bool begins(struct allium_tag *tag)
{
    return !tag || allium_request_begin(tag);
}

static void ends(struct allium_tag *tag, const void *object, size_t bytes)
{
    int error = errno;
    if (tag)
        allium_request_end(tag, object, bytes);
    errno = error;
}

static int print(struct allium_tag *tag, char **out, const char *format, va_list args)
{
    int length = begins(tag) ? vasprintf(out, format, args) : -1;
    ends(tag, length < 0 ? NULL : *out, (size_t)length + 1);
    return length;
}

static int print_checked(struct allium_tag *tag, char **out, int flag, const char *format, va_list args)
{
    int length = begins(tag) ? __vasprintf_chk(out, flag, format, args) : -1;
    ends(tag, length < 0 ? NULL : *out, (size_t)length + 1);
    return length;
}

TAG_EXPORT int allium_vasprintf(char **out, const char *format, va_list args)
{
    return print(CALLER(allium_vasprintf, "vasprintf"), out, format, args);
}

TAG_EXPORT int allium_asprintf(char **out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = print(CALLER(allium_asprintf, "asprintf"), out, format, args);
    va_end(args);
    return length;
}

/* Replaces __vasprintf_chk(), which code compiled with _FORTIFY_SOURCE calls. */
TAG_EXPORT int allium_vasprintf_chk(char **out, int flag, const char *format, va_list args)
{
    return print_checked(CALLER(allium_vasprintf_chk, "vasprintf"), out, flag, format, args);
}

TAG_EXPORT int allium_asprintf_chk(char **out, int flag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = print_checked(CALLER(allium_asprintf_chk, "asprintf"), out, flag, format, args);
    va_end(args);
    return length;
}

/* Replaces asprintf() in code that clang compiles with _FORTIFY_SOURCE (see malloc_hooks.h). */
TAG_EXPORT int allium_asprintf_checked(char **out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = print_checked(CALLER(allium_asprintf_checked, "asprintf"), out, 1, format, args);
    va_end(args);
    return length;
}

/*
 * getdelim() may reallocate the buffer, so the old buffer is removed from the map of objects before the call. If the
 * buffer has another address or size after the call, the buffer is charged to this call.
 */
static ssize_t read_line(struct allium_tag *tag, char **line, size_t *room, int end, FILE *from)
{
    struct object o;
    if (!line || !room)
        return getdelim(line, room, end, from);
    if (!begins(tag)) {
        ends(tag, NULL, 0);
        return -1;
    }
    char *old = *line;
    size_t old_room = *room;
    bool ours = old_room && tag_object_take(old, &o); /* getdelim() does not free a buffer of size 0 */
    int error = errno;
    errno = 0;
    ssize_t length = getdelim(line, room, end, from);
    bool failed = length < 0 && errno == ENOMEM; /* the old buffer may still be there if it could not grow */
    if (!errno)
        errno = error;
    if (*line == old && *room == old_room) {
        if (ours)
            tag_object_put_back(old, o);
    } else {
        if (ours)
            tag_released(o.account, o.bytes);
        if (*line)
            ends(tag, *line, *room);
    }
    if (failed)
        ends(tag, NULL, 0);
    return length;
}

TAG_EXPORT ssize_t allium_getdelim(char **line, size_t *room, int end, FILE *from)
{
    return read_line(CALLER(allium_getdelim, "getdelim"), line, room, end, from);
}

TAG_EXPORT ssize_t allium_getline(char **line, size_t *room, FILE *from)
{
    return read_line(CALLER(allium_getline, "getline"), line, room, '\n', from);
}

static char *resolve(struct allium_tag *tag, const char *path, char *into)
{
    if (into)
        return realpath(path, into);
    char *resolved = begins(tag) ? realpath(path, NULL) : NULL;
    if (resolved || errno == ENOMEM)
        ends(tag, resolved, resolved ? strlen(resolved) + 1 : 0);
    return resolved;
}

TAG_EXPORT char *allium_realpath(const char *path, char *into)
{
    return resolve(CALLER(allium_realpath, "realpath"), path, into);
}

/* Replaces __realpath_alias(), the name by which glibc's inline realpath() calls the real function. */
TAG_EXPORT char *allium_realpath_alias(const char *path, char *into)
{
    return resolve(CALLER(allium_realpath_alias, "realpath"), path, into);
}

TAG_EXPORT wchar_t *allium_wcsdup(const wchar_t *s)
{
    struct allium_tag *tag = CALLER(allium_wcsdup, "wcsdup");
    wchar_t *p = begins(tag) ? wcsdup(s) : NULL;
    ends(tag, p, p ? (wcslen(p) + 1) * sizeof(*p) : 0);
    return p;
}

TAG_EXPORT void *allium_malloc(size_t bytes)
{
    struct allium_tag *tag = CALLER(allium_malloc, "malloc");
    void *p = begins(tag) ? malloc(bytes) : NULL;
    ends(tag, p, bytes);
    return p;
}

TAG_EXPORT void *allium_calloc(size_t count, size_t each)
{
    struct allium_tag *tag = CALLER(allium_calloc, "calloc");
    void *p = begins(tag) ? calloc(count, each) : NULL;
    ends(tag, p, count * each);
    return p;
}

static void *resize(struct allium_tag *tag, void *old, size_t bytes)
{
    return tag ? allium_realloc_tagged(tag, old, bytes) : tag_realloc(NULL, old, bytes);
}

TAG_EXPORT void *allium_realloc(void *old, size_t bytes)
{
    return resize(CALLER(allium_realloc, "realloc"), old, bytes);
}

TAG_EXPORT void allium_free(void *p)
{
    allium_untrack(p);
    free(p);
}

TAG_EXPORT char *allium_strdup(const char *s)
{
    struct allium_tag *tag = CALLER(allium_strdup, "strdup");
    char *p = begins(tag) ? strdup(s) : NULL;
    ends(tag, p, p ? strlen(p) + 1 : 0);
    return p;
}

TAG_EXPORT char *allium_strndup(const char *s, size_t most)
{
    struct allium_tag *tag = CALLER(allium_strndup, "strndup");
    char *p = begins(tag) ? strndup(s, most) : NULL;
    ends(tag, p, p ? strlen(p) + 1 : 0);
    return p;
}

TAG_EXPORT void *allium_memalign(size_t alignment, size_t bytes)
{
    struct allium_tag *tag = CALLER(allium_memalign, "memalign");
    void *p = begins(tag) ? memalign(alignment, bytes) : NULL;
    ends(tag, p, bytes);
    return p;
}

TAG_EXPORT void *allium_aligned_alloc(size_t alignment, size_t bytes)
{
    struct allium_tag *tag = CALLER(allium_aligned_alloc, "aligned_alloc");
    void *p = begins(tag) ? aligned_alloc(alignment, bytes) : NULL;
    ends(tag, p, bytes);
    return p;
}

TAG_EXPORT int allium_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    struct allium_tag *tag = CALLER(allium_posix_memalign, "posix_memalign");
    int error = begins(tag) ? posix_memalign(out, alignment, bytes) : ENOMEM;
    ends(tag, error ? NULL : *out, bytes);
    return error;
}

TAG_EXPORT void *allium_reallocarray(void *old, size_t count, size_t each)
{
    struct allium_tag *tag = CALLER(allium_reallocarray, "reallocarray");
    size_t bytes;
    if (__builtin_mul_overflow(count, each, &bytes)) {
        ends(tag, NULL, 0);
        errno = ENOMEM;
        return NULL;
    }
    return resize(tag, old, bytes);
}
