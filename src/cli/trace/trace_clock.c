/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_clock.h"

#include "cli/command.h"
#include "collect/trace/clock_source.h"

bool trace_clock_must_be_mono(void)
{
    char name[CLOCK_SOURCE_BYTES];
    return !clock_source_is_tsc(name);
}

void trace_clock_tell(uint64_t images)
{
    char name[CLOCK_SOURCE_BYTES];
    if (!images)
        return;
    if (clock_source_is_tsc(name))
        command_fail(
            0, "the clock of events was CLOCK_MONOTONIC, which takes the program longer to read: the CPU's "
               "counter does not run at one rate at all times");
    else
        command_fail(
            0,
            "the clock of events was CLOCK_MONOTONIC, which takes the program longer to read: the kernel's "
            "clock source is %s, not tsc",
            name);
}
