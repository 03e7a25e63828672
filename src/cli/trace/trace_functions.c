/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_functions.h"

#include <string.h>

#include "run/trace/kernel_follow.h"

int trace_functions_parse(const struct arguments *a, const struct probe_target *target,
                          struct probe_list **out)
{
    struct error e = {""};
    *out = NULL;
    for (int i = 0; i < a->n_many; i++) {
        if (strcmp(a->many_of[i], "function") != 0)
            continue;
        if (!*out && kernel_follow_check(&e))
            return command_fail(EXIT_IMPOSSIBLE, "%s", e.text);
        *out = *out ? *out : probe_list_new();
        if (probe_list_add(*out, a->many[i], target, &e)) {
            probe_list_free(*out);
            *out = NULL;
            return command_fail(EXIT_USAGE, "%s", e.text);
        }
    }
    return -1;
}

void trace_functions_print_price(const char *line)
{
    command_fail(0, "%s", line);
}
