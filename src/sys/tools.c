/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "sys/tool.h"

const struct sys_tool *sys_tool_find(const char *name)
{
    for (const struct sys_tool *const *t = sys_tools; *t; t++)
        if (!strcmp((*t)->name, name))
            return *t;
    return NULL;
}

const char *sys_tool_option(const char *name)
{
    const char *end = strchr(name, '_');
    return end ? end + 1 : NULL;
}

void sys_tool_add_words(struct buf *b, const char *name, size_t len)
{
    const char *option = memchr(name, '_', len);
    const int of_tool = (int)(option ? option - name : (ptrdiff_t)len);
    buf_printf(b, "sys %.*s", of_tool, name);
    if (option)
        buf_printf(b, " --%.*s", (int)len - of_tool - 1, option + 1);
}

bool sys_tool_is_given(int argc, char **argv, const char *name, char letter)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        const char *word = argv[i];
        const size_t len = strncmp(word, "--", 2) ? 0 : strcspn(word + 2, "=");
        if (len > 1 && !strncmp(word + 2, name, len)) /* or its beginning, as options may be abbreviated */
            return true;
        if (letter && word[0] == '-' && word[1] == letter && (!word[2] || isdigit((unsigned char)word[2])))
            return true;
    }
    return false;
}
