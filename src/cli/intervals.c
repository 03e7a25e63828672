/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/intervals.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "base/units.h"

#define SECOND_NS  1000000000u
#define TIME_LEAST 10000000u

static int parse_time(const struct command *c, const struct arguments *a, const char *name, uint64_t *ns)
{
    const char *text = command_value(c, a, name);
    if (text && (units_parse_duration(text, ns) || *ns < TIME_LEAST))
        return command_misuse(c, "--%s %s is no duration of 10 ms or more: write 1s, 30s or 5m", name, text);
    return -1;
}

static int parse_count(const struct command *c, const struct arguments *a, uint32_t *count)
{
    const char *text = command_value(c, a, "count");
    char *end;
    unsigned long n = text ? strtoul(text, &end, 10) : 0;
    if (text && (*end || *text < '0' || *text > '9' || !n || n > UINT32_MAX))
        return command_misuse(c, "--count %s is no number of intervals", text);
    *count = (uint32_t)n;
    return -1;
}

int intervals_parse(struct intervals *i, const struct command *c, const struct arguments *a)
{
    *i = (struct intervals){0};
    int code = parse_time(c, a, "interval", &i->every_ns);
    if (code < 0)
        code = parse_time(c, a, "duration", &i->duration_ns);
    if (code < 0)
        code = parse_count(c, a, &i->count);
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
