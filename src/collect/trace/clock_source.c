/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/clock_source.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CURRENT "/sys/devices/system/clocksource/clocksource0/current_clocksource"

bool clock_source_is_tsc(char name[static CLOCK_SOURCE_BYTES])
{
    const int fd = open(CURRENT, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, name, CLOCK_SOURCE_BYTES - 1);
    if (fd >= 0)
        close(fd);
    name[n < 0 ? 0 : n] = '\0';
    name[strcspn(name, "\n")] = '\0';
    return !name[0] || !strcmp(name, "tsc");
}
