/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/intervals.h"

#include <errno.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "cli/option_values.h"

#define SECOND_NS  1000000000u
#define TIME_LEAST 10000000u

int intervals_parse(struct intervals *i, const struct command *c, const struct arguments *a)
{
    *i = (struct intervals){0};
    int code =
        option_values_parse_time(c, "interval", command_value(c, a, "interval"), TIME_LEAST, &i->every_ns);
    if (code < 0)
        code = option_values_parse_time(c, "duration", command_value(c, a, "duration"), TIME_LEAST,
                                        &i->duration_ns);
    if (code < 0)
        code = option_values_parse_count(c, "count", command_value(c, a, "count"), 1, UINT32_MAX, &i->count);
    if (code < 0 && !i->every_ns && (i->count || i->duration_ns))
        code = command_misuse(c, "--%s is of --interval: give that, too", i->count ? "count" : "duration");
    return code;
}

static void sleep_until(uint64_t due)
{
    struct timespec t = {.tv_sec = (time_t)(due / SECOND_NS), .tv_nsec = (long)(due % SECOND_NS)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

int intervals_run(const struct intervals *i, intervals_look_fn *look, void *arg)
{
    const uint64_t began = clock_ns(CLOCK_MONOTONIC),
                   end = i->duration_ns ? began + i->duration_ns : UINT64_MAX;
    uint64_t due = began, last = began;
    int code = look(arg, 0, 0);
    for (uint32_t n = 0; code < 0 && (!i->count || n < i->count); n++) {
        due += i->every_ns;
        if (due > end)
            break;
        sleep_until(due);
        uint64_t at = clock_ns(CLOCK_MONOTONIC);
        code = look(arg, at - began, at - last);
        last = at;
        if (due < clock_ns(CLOCK_MONOTONIC) - i->every_ns) /* it takes longer than that, or we were stopped */
            due = clock_ns(CLOCK_MONOTONIC);
    }
    return code < 0 ? EXIT_DONE : code;
}
