/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/cgroup_line.h"

#include <stdlib.h>
#include <string.h>

/* Whether "cpu,memory" has the controller. */
static bool has_memory(const char *controllers, const char *end)
{
    const char *const memory = "memory";
    const size_t len = strlen(memory);
    for (const char *at = controllers; at < end; at += strcspn(at, ",:") + 1)
        if (strcspn(at, ",:") == len && !strncmp(at, memory, len))
            return true;
    return false;
}

bool cgroup_line_find(const char *text, enum cgroup_hierarchy of, struct cgroup_line *out)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char *controllers;
        const long number = strtol(line, &controllers, 10);
        if (controllers == line || *controllers != ':' || number < 0 || number > INT32_MAX)
            continue;
        controllers++;
        const char *colon = controllers + strcspn(controllers, ":\n");
        if (*colon != ':' ||
            !(of == CGROUP_V2 ? !number && colon == controllers : has_memory(controllers, colon)))
            continue;
        *out = (struct cgroup_line){(int32_t)number, colon + 1, strcspn(colon + 1, "\n")};
        return true;
    }
    return false;
}
