/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_clock.h"

#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/option_values.h"
#include "collect/trace/clock_source.h"
#include "model/trace/clock_kind.h"

#define EVERY_MOST 65536ul

bool trace_clock_must_be_mono(void)
{
    char name[CLOCK_SOURCE_BYTES];
    return !clock_source_is_tsc(name);
}

int trace_clock_check(const struct command *c, const char *clock)
{
    static const struct word clocks[] = {{"tsc", 0},  {"mono", 0},    {"counter", 0},
                                         {"none", 0}, {"every:N", 0}, {NULL, 0}};
    int unused;
    if (!clock_kind_interpolates(clock) || !strcmp(clock, "every:N"))
        return !clock || strcmp(clock, "every:N")
                   ? option_values_parse(c, "clock", clock, clocks, &unused)
                   : command_misuse(c, "--clock every:N: give N a value, as in every:8");
    const char *digits = clock + strlen(CLOCK_KIND_EVERY);
    const unsigned long n = *digits >= '0' && *digits <= '9' ? strtoul(digits, NULL, 10) : 0;
    if (n < 2 || n > EVERY_MOST || n & (n - 1) || digits[strspn(digits, "0123456789")])
        return command_misuse(c, "invalid --clock %s: use a power of two from 2 to %lu, as in every:8", clock,
                              EVERY_MOST);
    return -1;
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
