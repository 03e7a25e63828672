/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_filter.h"

#include "collect/trace/event_filter.h"

int trace_filter_parse(const struct command *c, const struct arguments *a, const char **where)
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
    event_filter_free(filter);
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
