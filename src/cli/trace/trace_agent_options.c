/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_agent_options.h"

#include <inttypes.h>

#include "cli/option_values.h"
#include "cli/trace/trace_clock.h"
#include "collect/ledger/control_events.h"

#define BUFFER_LEAST (UINT64_C(64) << 10)
#define BUFFER_MOST  (UINT64_C(4) << 30)

int trace_agent_options_add(const struct command *c, const struct arguments *a, struct buf *out)
{
    static const struct word clocks[] = {{"tsc", 0}, {"mono", 1}, {"counter", 2}, {"none", 3}, {NULL, 0}};
    static const struct word stacks[] = {{"site", 0}, {"none", 1}, {"full", 2}, {NULL, 0}};
    int clock = 0, how = 0;
    uint64_t bytes = 0;
    const char *events = command_value(c, a, "events");
    int code = option_values_parse_size(c, "buffer", command_value(c, a, "buffer"), BUFFER_LEAST, BUFFER_MOST,
                                        &bytes);
    if (code < 0)
        code = option_values_parse(c, "clock", command_value(c, a, "clock"), clocks, &clock);
    if (code < 0)
        code = option_values_parse(c, "stacks", command_value(c, a, "stacks"), stacks, &how);
    if (bytes)
        buf_printf(out, ",buffer=%" PRIu64, bytes);
    if (clock)
        buf_printf(out, ",clock=%s", clocks[clock].text);
    else if (trace_clock_must_be_mono())
        buf_addstr(out, ",clock=mono");
    if (events && event_list_has_begin(events))
        buf_addstr(out, ",begin");
    if (how)
        buf_printf(out, ",stacks=%s", stacks[how].text);
    return code;
}
