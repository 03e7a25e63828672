/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_filter.h"

#include <string.h>

#include "cli/trace/trace_clock.h"
#include "collect/ledger/control_events.h"
#include "collect/trace/block_filter.h"
#include "model/trace/clock_kind.h"

int trace_filter_parse_clock(const struct command *c, const struct arguments *a, const char **clock)
{
    const char *events = command_value(c, a, "events"), *asked = command_value(c, a, "clock");
    const int code = trace_clock_check(c, asked);
    if (code >= 0)
        return code;
    const bool is_time = !asked || !strcmp(asked, "tsc") || !strcmp(asked, "mono");
    *clock = is_time ? NULL : asked;
    if (is_time)
        return -1;
    const char *lacks = clock_kind_interpolates(asked) ? "has not all times" : "has no times";
    const char *timed = command_value(c, a, "kernel") || command_value(c, a, "kernel-all") ? "kernel"
                        : command_value(c, a, "function")                                  ? "function"
                                                                                           : NULL;
    if (timed)
        return command_misuse(c, "--clock %s %s, and --%s needs them: use --clock mono", asked, lacks, timed);
    if (command_value(c, a, "flight"))
        return command_misuse(c, "--clock %s %s, and --flight needs them: use --clock mono", asked, lacks);
    if (events && !event_list_has_agent(events))
        return command_misuse(c, "--clock %s needs alloc in --events: --events alloc,%s", asked, events);
    if (clock_kind_interpolates(asked) && trace_clock_must_be_mono())
        *clock = NULL; /* all events have times then */
    return -1;
}

int trace_filter_parse(const struct command *c, const struct arguments *a, const char *clock,
                       const char **where)
{
    struct event_filter *filter = NULL;
    struct error e = {""};
    *where = command_value(c, a, "where");
    if (!*where)
        return -1;
    if (command_value(c, a, "flight"))
        return command_misuse(c,
                              "--flight keeps all events: leave out --where, and give it to allium events");
    const int bad = event_filter_new(&filter, *where, &e);
    const bool uses_time = !bad && event_filter_uses_time(filter);
    event_filter_free(filter);
    if (uses_time && clock_kind_has_numbers(clock))
        return command_misuse(c, "--where: there is no time with --clock %s: leave it out", clock);
    return bad ? command_misuse(c, "--where: %s", e.text) : -1;
}

void trace_filter_add_options(const char *where, struct buf *out)
{
    struct event_filter *filter = NULL;
    struct error e;
    if (where && !event_filter_new(&filter, where, &e))
        event_filter_add_options(filter, out);
    event_filter_free(filter);
}
