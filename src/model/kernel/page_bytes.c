/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/page_bytes.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LEAST (UINT64_C(4) << 10)
#define MOST  (UINT64_C(256) << 10)

bool page_bytes_possible(uint64_t bytes)
{
    return bytes >= LEAST && bytes <= MOST && !(bytes & (bytes - 1));
}

/* The number behind the name at the beginning of a line; 0: it is not there. */
static double number_of(const char *text, const char *name)
{
    const size_t len = strlen(name);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, name, len))
            return (double)strtoull(line + len, NULL, 10);
    return 0;
}

/* The counts change between the two readings: what is nearest counts. */
static uint64_t nearest(double bytes, double pages)
{
    uint64_t size = LEAST;
    while (size < MOST && bytes / pages > 1.4 * (double)size)
        size *= 2;
    const double per_size = bytes / pages / (double)size;
    return per_size > 0.7 && per_size < 1.4 ? size : 0;
}

uint64_t page_bytes_find(const char *meminfo, const char *vmstat)
{
    static const char *const same[][2] = {
        {"AnonPages:", "nr_anon_pages "}, {"Mapped:", "nr_mapped "}, {"Active(file):", "nr_active_file "}};
    uint64_t found = 0;
    for (size_t i = 0; meminfo && vmstat && i < sizeof(same) / sizeof(*same); i++) {
        const double kib = number_of(meminfo, same[i][0]), pages = number_of(vmstat, same[i][1]);
        const uint64_t size = pages > 0 ? nearest(1024 * kib, pages) : 0;
        if (pages > 0 && (!size || (found && size != found)))
            return 0;
        found = size ? size : found;
    }
    return found;
}
