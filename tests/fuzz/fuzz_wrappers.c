/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/model/wrappers: whatever is in a list, its lines are either patterns within the bounds or bad
 * ones, and the last line that fits a name decides. The bytes before the first NUL are the name, those behind it the
 * list.
 */
#include "require.h"

#include "model/profile/wrappers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/sigsafe/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_patterns(const struct wrappers *w, const struct wrappers_bad *bad, size_t lines)
{
    require(w->all.len + bad->lines <= lines, "more patterns than lines");
    require(!bad->lines == !bad->why && bad->first <= lines, "a bad line that is none");
    vec_each (const struct wrapper, it, &w->all) {
        size_t len = strlen(it->pattern);
        require(len && len <= WRAPPERS_LINE_BYTES, "a pattern out of bounds");
        require(!strpbrk(it->pattern, "\t\r\n\033"), "a pattern with control characters");
        require(it->pattern[0] != ' ' && it->pattern[len - 1] != ' ', "a pattern with blanks around it");
        require(it->no || it->pattern[strspn(it->pattern, "*?")], "a pattern for everything");
    }
}

/* Once more, forwards. */
static bool decides(const struct wrappers *w, const char *name)
{
    bool is = false;
    vec_each (const struct wrapper, it, &w->all)
        if (pattern_glob(it->pattern, name, strlen(name)))
            is = !it->no;
    return is;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wrappers w = {0};
    struct wrappers_bad bad;
    size_t len = strnlen((const char *)data, size), from = len < size ? len + 1 : size, lines = 1;
    char *name = mem_strndup((const char *)data, len);
    char *text = mem_alloc(size - from ? size - from : 1);
    if (size > from)
        memcpy(text, data + from, size - from);
    for (size_t i = 0; i < size - from; i++)
        lines += text[i] == '\n';
    wrappers_add(&w, text, size - from, &bad);
    free(text);
    check_patterns(&w, &bad, lines);
    struct profile *p = profile_new();
    *vec_push(&p->lines) = (struct profile_line){.function = profile_string(p, name)};
    wrappers_mark(&w, p);
    require(wrappers_have(&w, name) == decides(&w, name), "another line than the last decides");
    require(p->lines.at[0].wrapper == decides(&w, name), "marked otherwise");
    profile_free(p);
    wrappers_release(&w);
    free(name);
    return 0;
}
