/* SPDX-License-Identifier: BSD-2-Clause */
#if defined(ALLIUM_DISABLE)
#include "allium/disabled.h"
#elif !defined(ALLIUM_MALLOC_HOOKS_H) && !defined(__ASSEMBLER__) /* -include reaches .S files, too */
#define ALLIUM_MALLOC_HOOKS_H

/*
 * Tags each call of malloc() and its family without a change to the source:
 *
 *     cc $(pkg-config --cflags allium) -include allium/malloc_hooks.h ... $(pkg-config --libs allium)
 *
 * The most frequent functions become inline functions of the same name that call the real ones and account
 * for the result. So `std::malloc`, members and variables of these names, the program's own prototypes, and a
 * later _GNU_SOURCE keep their meaning. A pointer to one of these functions points to the real function:
 * objects allocated through the pointer have no tag. Line numbers come from the debug information (-g).
 *
 * Calls of the other functions are renamed: they go to functions of liballium.so, which identify the place by
 * the return address of the call. These are the functions of which the C library has inline versions, the
 * functions that take a variable number of arguments, and the functions whose names a source may use for itself.
 */

#include "allium/helper.h"

#pragma push_macro("size_t")
#define size_t __SIZE_TYPE__

#ifdef __cplusplus
#define ALLIUM_NOTHROW    noexcept(true)
#define ALLIUM_REAL(name) noexcept(true) __asm__(#name)
#define ALLIUM_DEFINES(f) f noexcept(true)
extern "C" {
#else
#define ALLIUM_NOTHROW    __attribute__((nothrow))
#define ALLIUM_REAL(name) __asm__(#name) __attribute__((nothrow))
#define ALLIUM_DEFINES(f) f
#endif

#define ALLIUM_CALL_TAG(name) ALLIUM_DESCRIPTOR_UNIQUE("0", ALLIUM_TEXT("malloc", name))
/*
 * Makes one call of the function `name` and accounts for it. `real` is the statement that makes the call.
 * `object` is an expression for the result of the call: the allocated object, or NULL. `bytes` is an expression
 * for the size of the object, and is evaluated only if `object` is not NULL. `fails` is the statement to run
 * instead of `real` if fault injection makes the call fail.
 */
#define ALLIUM_TAGGED(name, real, object, bytes, fails)                                                      \
    do {                                                                                                     \
        struct allium_tag *allium_tag_ = ALLIUM_CALL_TAG(name);                                              \
        int allium_state_ = allium_tag_state(allium_tag_);                                                   \
        if (ALLIUM_LIKELY(!allium_state_)) {                                                                 \
            real;                                                                                            \
        } else if (ALLIUM_LIKELY(allium_state_ > 0)) {                                                       \
            real;                                                                                            \
            if (ALLIUM_LIKELY(object))                                                                       \
                allium_track_counted(allium_tag_, object, bytes);                                            \
            else                                                                                             \
                allium_failed(allium_tag_);                                                                  \
        } else {                                                                                             \
            if (allium_request_begin(allium_tag_))                                                           \
                real;                                                                                        \
            else                                                                                             \
                fails;                                                                                       \
            allium_request_end(allium_tag_, object, (object) ? (bytes) : 0);                                 \
        }                                                                                                    \
    } while (0)

void *allium_mmap(struct allium_tag *, void *, size_t, int, int, int, long) ALLIUM_NOTHROW;
char *allium_realpath_alias(const char *, char *) ALLIUM_NOTHROW;

/*
 * A C89 source may declare these functions with types of its own (`char *malloc();`), and no inline function of that
 * name can stand beside such a declaration. In C89, and with -DALLIUM_BY_CALL, the assembler renames the calls instead:
 * they go to functions of liballium.so, which identify the place by the return address of the call.
 */
#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#undef ALLIUM_BY_CALL
#define ALLIUM_BY_CALL 1
#endif

#if defined(ALLIUM_BY_CALL)
__asm__(".set malloc, allium_malloc\n"
        "\t.set calloc, allium_calloc\n"
        "\t.set realloc, allium_realloc\n"
        "\t.set free, allium_free\n"
        "\t.set mmap, allium_mmap64\n");
#else
void *allium_real_malloc(size_t) ALLIUM_REAL(malloc);
void *allium_real_calloc(size_t, size_t) ALLIUM_REAL(calloc);
void allium_real_free(void *) ALLIUM_REAL(free);

void *malloc(size_t) ALLIUM_NOTHROW;
void *calloc(size_t, size_t) ALLIUM_NOTHROW;
void *realloc(void *, size_t) ALLIUM_NOTHROW;
void free(void *) ALLIUM_NOTHROW;

ALLIUM_INLINE void *ALLIUM_DEFINES(malloc(size_t bytes))
{
    void *p;
    ALLIUM_TAGGED("malloc", p = allium_real_malloc(bytes), p, bytes, p = ALLIUM_NULL);
    return p;
}

ALLIUM_INLINE void *ALLIUM_DEFINES(calloc(size_t count, size_t each))
{
    void *p;
    ALLIUM_TAGGED("calloc", p = allium_real_calloc(count, each), p, count * each, p = ALLIUM_NULL);
    return p;
}

ALLIUM_INLINE void *ALLIUM_DEFINES(realloc(void *old, size_t bytes))
{
    return allium_realloc_tagged(ALLIUM_CALL_TAG("realloc"), old, bytes);
}

ALLIUM_INLINE void ALLIUM_DEFINES(free(void *p))
{
    allium_untrack(p);
    allium_real_free(p);
}

/* <sys/mman.h> may later redirect mmap to mmap64 (_FILE_OFFSET_BITS=64). Calls of mmap still use this inline
 * function. */
void *mmap(void *, size_t, int, int, int, long) ALLIUM_NOTHROW;
ALLIUM_INLINE void *ALLIUM_DEFINES(mmap(void *at, size_t bytes, int protection, int flags, int fd, long from))
{
    return allium_mmap(ALLIUM_DESCRIPTOR_UNIQUE("0", ALLIUM_TEXT("mmap", "mmap")), at, bytes, protection,
                       flags, fd, from);
}
#endif

/*
 * Functions that the C library declares beyond ISO C99. A source that selects ISO C alone (-std=c99) may define
 * functions with these names itself: so their calls are renamed instead. With clang, that is also done if such
 * a source defines _GNU_SOURCE: clang has no builtins of these names then, and would not inline the functions.
 */
#if defined(__STRICT_ANSI__) && defined(__clang__) && defined(__cplusplus)
int posix_memalign(void **, size_t, size_t) ALLIUM_REAL(allium_posix_memalign);
void *aligned_alloc(size_t, size_t) ALLIUM_REAL(allium_aligned_alloc);
void *memalign(size_t, size_t) ALLIUM_REAL(allium_memalign);
char *strdup(const char *) ALLIUM_REAL(allium_strdup);
char *strndup(const char *, size_t) ALLIUM_REAL(allium_strndup);
#elif defined(ALLIUM_BY_CALL) || (defined(__STRICT_ANSI__) && (defined(__clang__) || !defined(_GNU_SOURCE)))
#pragma redefine_extname posix_memalign allium_posix_memalign
#pragma redefine_extname aligned_alloc allium_aligned_alloc
#pragma redefine_extname memalign allium_memalign
#pragma redefine_extname strdup allium_strdup
#pragma redefine_extname strndup allium_strndup
#else
void *allium_real_aligned_alloc(size_t, size_t) ALLIUM_REAL(aligned_alloc);
void *allium_real_memalign(size_t, size_t) ALLIUM_REAL(memalign);
char *allium_real_strdup(const char *) ALLIUM_REAL(strdup);
char *allium_real_strndup(const char *, size_t) ALLIUM_REAL(strndup);

int posix_memalign(void **, size_t, size_t) ALLIUM_NOTHROW;
void *aligned_alloc(size_t, size_t) ALLIUM_NOTHROW;
void *memalign(size_t, size_t) ALLIUM_NOTHROW;
char *strdup(const char *) ALLIUM_NOTHROW;
char *strndup(const char *, size_t) ALLIUM_NOTHROW;

ALLIUM_INLINE int ALLIUM_DEFINES(posix_memalign(void **out, size_t alignment, size_t bytes))
{
    int error;
    ALLIUM_TAGGED("posix_memalign", error = allium_real_posix_memalign(out, alignment, bytes),
                  error ? ALLIUM_NULL : *out, bytes, error = 12 /* ENOMEM */);
    return error;
}

ALLIUM_INLINE void *ALLIUM_DEFINES(aligned_alloc(size_t alignment, size_t bytes))
{
    void *p;
    ALLIUM_TAGGED("aligned_alloc", p = allium_real_aligned_alloc(alignment, bytes), p, bytes,
                  p = ALLIUM_NULL);
    return p;
}

ALLIUM_INLINE void *ALLIUM_DEFINES(memalign(size_t alignment, size_t bytes))
{
    void *p;
    ALLIUM_TAGGED("memalign", p = allium_real_memalign(alignment, bytes), p, bytes, p = ALLIUM_NULL);
    return p;
}

ALLIUM_INLINE char *ALLIUM_DEFINES(strdup(const char *s))
{
    char *p;
    ALLIUM_TAGGED("strdup", p = allium_real_strdup(s), p, __builtin_strlen(p) + 1, p = ALLIUM_NULL);
    return p;
}

ALLIUM_INLINE char *ALLIUM_DEFINES(strndup(const char *s, size_t most))
{
    char *p;
    ALLIUM_TAGGED("strndup", p = allium_real_strndup(s, most), p, __builtin_strlen(p) + 1, p = ALLIUM_NULL);
    return p;
}

#endif

/* The fortified realpath() of glibc, an inline function, calls realpath() by this name. */
char *__realpath_alias(const char *__restrict__, char *__restrict__) ALLIUM_NOTHROW;
ALLIUM_INLINE char *ALLIUM_DEFINES(__realpath_alias(const char *__restrict__ path, char *__restrict__ into))
{
    return allium_realpath_alias(path, into);
}

#if defined(__clang__) && defined(__cplusplus)
/* For C++ with clang, instead of the pragmas below: clang would warn of the pragmas at each class member that has the
 * name of a renamed function. */
struct _IO_FILE;
void *mmap64(void *, size_t, int, int, int, long) ALLIUM_REAL(allium_mmap64);
int munmap(void *, size_t) ALLIUM_REAL(allium_munmap);
void *mremap(void *, size_t, size_t, int, ...) ALLIUM_REAL(allium_mremap);
void *reallocarray(void *, size_t, size_t) ALLIUM_REAL(allium_reallocarray);
wchar_t *wcsdup(const wchar_t *) ALLIUM_REAL(allium_wcsdup);
char *realpath(const char *, char *) ALLIUM_REAL(allium_realpath);
int asprintf(char **, const char *, ...) ALLIUM_REAL(allium_asprintf);
int vasprintf(char **, const char *, __builtin_va_list) ALLIUM_REAL(allium_vasprintf);
long getline(char **, size_t *, struct _IO_FILE *) __asm__("allium_getline");
long getdelim(char **, size_t *, int, struct _IO_FILE *) __asm__("allium_getdelim");
#else
#pragma redefine_extname mmap64 allium_mmap64
#pragma redefine_extname munmap allium_munmap
#pragma redefine_extname mremap allium_mremap
#pragma redefine_extname reallocarray allium_reallocarray
#pragma redefine_extname wcsdup allium_wcsdup
#pragma redefine_extname getline allium_getline
#pragma redefine_extname getdelim allium_getdelim
#pragma redefine_extname realpath allium_realpath
#pragma redefine_extname asprintf allium_asprintf
#pragma redefine_extname vasprintf allium_vasprintf
#endif
#pragma redefine_extname __getdelim allium_getdelim
#pragma redefine_extname __asprintf_chk allium_asprintf_chk
#pragma redefine_extname __vasprintf_chk allium_vasprintf_chk

#if defined(__clang__) && defined(_FORTIFY_SOURCE)
/*
 * In glibc 2.40 and later, the fortified asprintf() for clang is a function with variable arguments, which clang
 * does not inline. All calls in a source would go through this function, and share one place. clang prefers the
 * overload below, because it has enable_if: so each call goes to the library directly.
 */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wgcc-compat"
int asprintf(char **, const char *, ...) __asm__("allium_asprintf_checked")
    __attribute__((overloadable, enable_if(1, ""), format(printf, 2, 3), nothrow));
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
}
#endif

#pragma pop_macro("size_t")

#endif
