/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_agent_options.h"

#include <inttypes.h>
#include <string.h>

#include "cli/option_values.h"
#include "cli/trace/trace_clock.h"
#include "collect/ledger/control_events.h"
#include "model/trace/clock_kind.h"

#define BUFFER_LEAST (UINT64_C(64) << 10)
#define BUFFER_MOST  (UINT64_C(4) << 30)

int trace_agent_options_add(const struct command *c, const struct arguments *a, struct buf *out)
{
    static const struct word stacks[] = {{"site", 0}, {"none", 1}, {"full", 2}, {NULL, 0}};
    const char *clock = command_value(c, a, "clock");
    int how = 0;
    uint64_t bytes = 0;
    const char *events = command_value(c, a, "events");
    int code = option_values_parse_size(c, "buffer", command_value(c, a, "buffer"), BUFFER_LEAST, BUFFER_MOST,
                                        &bytes);
    if (code < 0)
        code = option_values_parse(c, "stacks", command_value(c, a, "stacks"), stacks, &how);
    if (bytes)
        buf_printf(out, ",buffer=%" PRIu64, bytes);
    const bool has_ticks = !clock || !strcmp(clock, "tsc") || clock_kind_interpolates(clock);
    if (has_ticks && trace_clock_must_be_mono())
        clock = "mono";
    if (clock && strcmp(clock, "tsc") != 0)
        buf_printf(out, ",clock=%s", clock);
    if (events && event_list_has_begin(events))
        buf_addstr(out, ",begin");
    if (how)
        buf_printf(out, ",stacks=%s", stacks[how].text);
    return code;
}
