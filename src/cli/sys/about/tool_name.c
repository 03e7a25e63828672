/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/about/tool_name.h"

#include <string.h>

static const char *const suffixes[] = {"-bpfcc", ".bt"};

/* Chapter 7, and what chapter 14 has of memory. */
static const char *const of_book[] = {
    "brkstack",  "drsnoop",  "faults",  "ffaults",  "hfaults",     "kmem",   "kpages", "memleak",
    "mmapsnoop", "numamove", "oomkill", "shmsnoop", "slabratetop", "swapin", "vmscan",
};

size_t tool_name_bytes(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        size_t end = strlen(suffixes[i]);
        if (len > end && !strcmp(name + len - end, suffixes[i]))
            return len - end;
    }
    return len;
}

const struct sys_tool *tool_name_find(const char *name)
{
    size_t len = tool_name_bytes(name);
    for (const struct sys_tool *const *t = sys_tools; *t; t++)
        if (strlen((*t)->name) == len && !strncmp((*t)->name, name, len))
            return *t;
    return NULL;
}

bool tool_name_is_of_book(const char *name)
{
    size_t len = tool_name_bytes(name);
    for (size_t i = 0; i < sizeof(of_book) / sizeof(*of_book); i++)
        if (strlen(of_book[i]) == len && !strncmp(of_book[i], name, len))
            return true;
    return false;
}
