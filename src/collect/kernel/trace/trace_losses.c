/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/trace_losses.h"

#include <stdlib.h>
#include <string.h>

/* "overrun: 12", "commit overrun: 0", "dropped events: 0" */
uint64_t trace_losses_of(const char *stats)
{
    static const char *const lost[] = {"overrun: ", "commit overrun: ", "dropped events: "};
    uint64_t sum = 0;
    for (const char *line = stats; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        for (size_t i = 0; i < sizeof(lost) / sizeof(*lost); i++)
            if (!strncmp(line, lost[i], strlen(lost[i])))
                sum += strtoull(line + strlen(lost[i]), NULL, 10);
    return sum;
}
