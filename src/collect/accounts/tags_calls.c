/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/tags_calls.h"

#include <string.h>

#include "symbol/calls.h"

/* The functions that <allium/malloc_hooks.h> only renames (src/tag/libc_wrappers.c). Their calls have no descriptor. */
static const struct {
    const char *symbol, *class, *name;
} family[] = {
    {"allium_asprintf", "malloc", "asprintf"},
    {"allium_asprintf_chk", "malloc", "asprintf"},
    {"allium_asprintf_checked", "malloc", "asprintf"},
    {"allium_vasprintf", "malloc", "vasprintf"},
    {"allium_vasprintf_chk", "malloc", "vasprintf"},
    {"allium_getline", "malloc", "getline"},
    {"allium_getdelim", "malloc", "getdelim"},
    {"allium_realpath", "malloc", "realpath"},
    {"allium_realpath_alias", "malloc", "realpath"},
    {"allium_wcsdup", "malloc", "wcsdup"},
    {"allium_strdup", "malloc", "strdup"},
    {"allium_strndup", "malloc", "strndup"},
    {"allium_memalign", "malloc", "memalign"},
    {"allium_aligned_alloc", "malloc", "aligned_alloc"},
    {"allium_posix_memalign", "malloc", "posix_memalign"},
    {"allium_reallocarray", "malloc", "reallocarray"},
};
#define FAMILY (sizeof(family) / sizeof(*family))

/* A function that allocates for its callers. Each call of it is a place. */
struct callee {
    struct tags_file_tag helper; /* its descriptor, or class and name from `family` */
    bool told;                   /* a function that jumps to it is a place; else its caller is */
    bool called;
};

struct adding {
    struct tags_file *file;
    const struct symbol_calls *calls;
    struct VEC(struct symbol_target) targets;
    struct VEC(struct callee) callees;
};

/* Returns whether the descriptor belongs to a helper. Descriptors of ALLIUM_TAG() have a file, and those of
 * malloc_hooks.h have no line. */
static bool is_helper(const struct tags_file_tag *t)
{
    return t->line && *t->class && !*t->file;
}

static void want(struct adding *a, struct symbol_target target, struct tags_file_tag helper, bool told)
{
    *vec_push(&a->targets) = target;
    *vec_push(&a->callees) = (struct callee){.helper = helper, .told = told};
}

static void add_site(void *arg, const struct symbol_target *target, const struct symbol_site *site)
{
    struct adding *a = arg;
    struct callee *callee = &a->callees.at[target - a->targets.at];
    uint64_t code = site->jumps ? symbol_calls_function(a->calls, site->at) : site->behind - 1;
    if (site->jumps && (!code || !callee->told || code == target->code))
        return;
    callee->called = true;
    *vec_push(&a->file->tags) = (struct tags_file_tag){
        .class = callee->helper.class, .name = callee->helper.name, .file = "", .code = code};
}

/* Removes the descriptors of helpers with known calls: their calls are the places. */
static void leave_out(struct adding *a)
{
    size_t kept = 0;
    vec_each (const struct tags_file_tag, t, &a->file->tags) {
        bool is_called = false;
        vec_each (const struct callee, callee, &a->callees)
            is_called =
                is_called || (callee->called && callee->helper.line && callee->helper.code == t->code);
        if (!is_called)
            a->file->tags.at[kept++] = *t;
    }
    a->file->tags.len = kept;
}

void tags_calls_add(struct tags_file *f, const struct symbol_module *module)
{
    struct symbol_calls *calls = symbol_calls_open(module);
    struct adding a = {.file = f, .calls = calls};
    if (!calls)
        return;
    for (size_t i = 0; i < FAMILY; i++)
        want(&a, (struct symbol_target){family[i].symbol, 0},
             (struct tags_file_tag){.class = family[i].class, .name = family[i].name}, true);
    vec_each (const struct tags_file_tag, t, &f->tags) {
        uint64_t entry = is_helper(t) ? symbol_calls_function(calls, t->code) : 0;
        if (entry)
            want(&a, (struct symbol_target){symbol_calls_exported(calls, entry), entry}, *t,
                 !strcmp(t->class, "helper") && strcmp(t->name, "0") != 0);
    }
    symbol_calls_of(calls, a.targets.at, a.targets.len, add_site, &a);
    leave_out(&a);
    vec_release(&a.targets);
    vec_release(&a.callees);
    symbol_calls_free(calls);
}
