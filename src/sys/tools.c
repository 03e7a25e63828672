/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "sys/tool.h"

const struct sys_tool *sys_tool_find(const char *name)
{
    for (const struct sys_tool *const *t = sys_tools; *t; t++)
        if (!strcmp((*t)->name, name))
            return *t;
    return NULL;
}

bool sys_tool_is_given(int argc, char **argv, const char *name, char letter)
{
    const size_t len = strlen(name);
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        const char *word = argv[i];
        if (!strncmp(word, "--", 2) && !strncmp(word + 2, name, len) &&
            (!word[2 + len] || word[2 + len] == '='))
            return true;
        if (letter && word[0] == '-' && word[1] == letter)
            return true;
    }
    return false;
}
