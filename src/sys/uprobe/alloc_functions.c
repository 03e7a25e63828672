/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/uprobe/alloc_functions.h"

#include <errno.h>
#include <string.h>

#include "bpf/memleak.h"

#define NO        MEMLEAK_NO_ARGUMENT
#define ARGUMENTS 6u

#define ALLOC(size)        ALLOC_RETURNS, MEMLEAK_COOKIE(size, NO, NO)
#define ALLOC_TIMES(n, of) ALLOC_RETURNS, MEMLEAK_COOKIE(n, of, NO)
#define THROWS(size)       ALLOC_RETURNS, MEMLEAK_COOKIE(size, NO, NO) | MEMLEAK_THROWS
#define REALLOC(old, size) ALLOC_RETURNS, MEMLEAK_COOKIE(size, NO, old)
#define FREE(old)          ALLOC_FREES, MEMLEAK_COOKIE(NO, NO, old)

/* The names of C; libraries and programs have them with a prefix, too. */
static const struct alloc_function of_c[] = {
    {"malloc", NULL, ALLOC(0), false, false},
    {"calloc", NULL, ALLOC_TIMES(0, 1), false, false},
    {"realloc", NULL, REALLOC(0, 1), false, false},
    {"reallocarray", NULL, ALLOC_RETURNS, MEMLEAK_COOKIE(1, 2, 0), false, false},
    {"memalign", NULL, ALLOC(1), false, false},
    {"aligned_alloc", NULL, ALLOC(1), false, false},
    {"posix_memalign", NULL, ALLOC_RETURNS, MEMLEAK_COOKIE(2, NO, NO) | MEMLEAK_RESULT_STORED, false, false},
    {"valloc", NULL, ALLOC(0), false, false},
    {"pvalloc", NULL, ALLOC(0), false, false},
    {"free", NULL, FREE(0), false, false},
    {"cfree", NULL, FREE(0), false, false},
    {"free_sized", NULL, FREE(0), false, false},
    {"free_aligned_sized", NULL, FREE(0), false, false},
    /* jemalloc's own */
    {"mallocx", NULL, ALLOC(0), false, false},
    {"rallocx", NULL, REALLOC(0, 1), false, false},
    {"dallocx", NULL, FREE(0), false, false},
    {"sdallocx", NULL, FREE(0), false, false},
};

static const char *const prefixes[] = {"", "je_", "mi_", "tc_", "__libc_"};

static const struct alloc_function others[] = {
    {"_dl_debug_state", NULL, ALLOC_LOADS, 0, false, false},
    /* operator new and new[]: plain, nothrow, aligned, and both */
    {"_Znwm", NULL, THROWS(0), true, true},
    {"_Znam", NULL, THROWS(0), true, true},
    {"_ZnwmRKSt9nothrow_t", NULL, ALLOC(0), false, true},
    {"_ZnamRKSt9nothrow_t", NULL, ALLOC(0), false, true},
    {"_ZnwmSt11align_val_t", NULL, THROWS(0), true, true},
    {"_ZnamSt11align_val_t", NULL, THROWS(0), true, true},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", NULL, ALLOC(0), false, true},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", NULL, ALLOC(0), false, true},
    /* operator delete and delete[]: plain, sized, nothrow, aligned */
    {"_ZdlPv", NULL, FREE(0), false, true},
    {"_ZdaPv", NULL, FREE(0), false, true},
    {"_ZdlPvm", NULL, FREE(0), false, true},
    {"_ZdaPvm", NULL, FREE(0), false, true},
    {"_ZdlPvRKSt9nothrow_t", NULL, FREE(0), false, true},
    {"_ZdaPvRKSt9nothrow_t", NULL, FREE(0), false, true},
    {"_ZdlPvSt11align_val_t", NULL, FREE(0), false, true},
    {"_ZdaPvSt11align_val_t", NULL, FREE(0), false, true},
    {"_ZdlPvmSt11align_val_t", NULL, FREE(0), false, true},
    {"_ZdaPvmSt11align_val_t", NULL, FREE(0), false, true},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", NULL, FREE(0), false, true},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", NULL, FREE(0), false, true},
};

#define COUNT(of) (sizeof(of) / sizeof(*(of)))

/* The name, which belongs to `f` from now on. */
static const char *own(struct alloc_functions *f, char *name)
{
    *vec_push(&f->texts) = name;
    return name;
}

static void add_prefixed(struct alloc_functions *f, const char *prefix)
{
    for (size_t i = 0; i < COUNT(of_c); i++) {
        struct buf name = BUF_INIT;
        struct alloc_function one = of_c[i];
        buf_printf(&name, "%s%s", prefix, one.name);
        one.name = own(f, buf_detach(&name));
        *vec_push(&f->all) = one;
    }
}

void alloc_functions_init(struct alloc_functions *f)
{
    *f = (struct alloc_functions){.user_given = false};
    for (size_t i = 0; i < COUNT(prefixes); i++)
        add_prefixed(f, prefixes[i]);
    for (size_t i = 0; i < COUNT(others); i++)
        *vec_push(&f->all) = others[i];
}

void alloc_functions_release(struct alloc_functions *f)
{
    vec_each (char *, text, &f->texts)
        free(*text);
    vec_release(&f->texts);
    vec_release(&f->all);
}

/* ---- --functions ---- */

static int refuse(const char *text, struct error *e)
{
    return error_set(
        e, EINVAL,
        "invalid --functions '%s': use [PATH:]alloc=NAME,free=NAME[,size=arg1[*arg2]], with arg1 to "
        "arg6",
        text);
}

/* "arg2": sets *number to 1. Returns what follows; NULL: it is not that. */
static const char *read_argument(const char *at, uint32_t *number)
{
    if (strncmp(at, "arg", 3) || at[3] < '1' || at[3] > (char)('0' + ARGUMENTS))
        return NULL;
    *number = (uint32_t)(at[3] - '1');
    return at + 4;
}

static bool read_size(const char *at, uint32_t *size, uint32_t *times)
{
    at = read_argument(at, size);
    if (at && *at == '*')
        at = read_argument(at + 1, times);
    return at && !*at;
}

static char *value_of(char *part, const char *key)
{
    const size_t len = strlen(key);
    return !strncmp(part, key, len) && part[len] ? part + len : NULL;
}

int alloc_functions_parse(struct alloc_functions *f, const char *text, struct error *e)
{
    char *copy = mem_strdup(text), *names = strstr(copy, "alloc="), *rest = names, *part;
    char *alloc = NULL, *release = NULL;
    uint32_t size = 0, times = NO;
    own(f, copy);
    if (!names || (names > copy && names[-1] != ':'))
        return refuse(text, e);
    const char *path = names > copy ? copy : NULL;
    if (path)
        names[-1] = '\0';
    while ((part = strsep(&rest, ","))) {
        char *of_alloc = value_of(part, "alloc="), *of_free = value_of(part, "free="),
             *of_size = value_of(part, "size=");
        if ((!of_alloc && !of_free && !of_size) || (of_size && !read_size(of_size, &size, &times)))
            return refuse(text, e);
        alloc = of_alloc ? of_alloc : alloc;
        release = of_free ? of_free : release;
    }
    if (!alloc || !release)
        return refuse(text, e);
    if (!f->user_given) {
        vec_release(&f->all);
        *vec_push(&f->all) = others[0];
    }
    f->user_given = true;
    f->may_come = f->may_come || path;
    *vec_push(&f->all) =
        (struct alloc_function){alloc, path, ALLOC_RETURNS, MEMLEAK_COOKIE(size, times, NO), false, false};
    *vec_push(&f->all) = (struct alloc_function){release, path, FREE(0), false, false};
    return 0;
}
