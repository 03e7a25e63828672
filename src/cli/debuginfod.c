/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/debuginfod.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define BUDGET_NS     (2ull * 1000000000)
#define BUDGET_MAX_NS (86400ull * 1000000000)

static struct {
    uint64_t budget_ns;
    bool off, reported;
    struct symbol_servers *servers;
} state = {.budget_ns = BUDGET_NS};

static bool has_servers(void)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    return urls && urls[strspn(urls, " ")];
}

int debuginfod_choose(const struct command *c, const char *value)
{
    const char *name = "--" DEBUGINFOD_OPTION_NAME " ";
    bool asked = value != NULL; /* and so by somebody who expects that something comes of it */
    if (!value) {
        value = getenv("ALLIUM_DEBUGINFOD");
        name = "ALLIUM_DEBUGINFOD=";
    }
    if (!value || !*value)
        return -1;
    state.off = !strcmp(value, "off");
    if (!strcmp(value, "wait"))
        state.budget_ns = SYMBOL_SERVERS_NO_LIMIT;
    else if (!state.off && (units_parse_duration(value, &state.budget_ns) || state.budget_ns > BUDGET_MAX_NS))
        return command_misuse(
            c, "invalid value: %s%s: use off, wait, or a duration such as 500ms or 10s, up to 24h", name,
            value);
    if (asked && !state.off && !has_servers())
        command_fail(0, "%s%s has no effect: set DEBUGINFOD_URLS (see allium doctor)", name, value);
    return -1;
}

struct symbol_servers *debuginfod_servers(void)
{
    if (state.off || !has_servers())
        return NULL;
    if (!state.servers)
        state.servers = symbol_servers_new(state.budget_ns);
    return state.servers;
}

void debuginfod_report(void)
{
    if (!state.servers || state.reported)
        return;
    struct symbol_servers_tally t = symbol_servers_tally(state.servers);
    char budget[UNITS_TEXT_BYTES];
    state.reported = t.late || t.failed;
    if (t.late && state.budget_ns == SYMBOL_SERVERS_NO_LIMIT)
        command_fail(0, "debug files of %zu of %zu binaries were not waited for", t.late, t.wanted);
    else if (t.late)
        command_fail(0,
                     "debug files of %zu of %zu binaries did not arrive from DEBUGINFOD_URLS within %s; use "
                     "--debuginfod wait to wait for them, or --debuginfod off",
                     t.late, t.wanted, units_format_duration(budget, (double)state.budget_ns));
    else if (t.failed)
        command_fail(0, "debug files of %zu of %zu binaries could not be fetched from DEBUGINFOD_URLS: %s",
                     t.failed, t.wanted, strerror(-t.error));
}
