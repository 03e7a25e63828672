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
