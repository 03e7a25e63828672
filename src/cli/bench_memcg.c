/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/bench_memcg.h"

#include <errno.h>

#include "bench/memcg/memcg_table.h"
#include "cli/option_values.h"
#include "cli/terminal.h"
#include "view/table/table_view.h"

#define MEMCG_ROW_NS UINT64_C(3000000000)

int bench_memcg_run(const struct command *c, const struct arguments *a)
{
    static const char *const others[] = {"mechanism", "sink", "list", "threads", "rate", "explain"};
    uint64_t time_ns = MEMCG_COST_ROWS * MEMCG_ROW_NS;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (command_value(c, a, others[i]))
            return command_misuse(c, "--memcg and --%s do not go together: leave one out", others[i]);
    const int code = option_values_parse_time(c, "time", command_value(c, a, "time"), 0, &time_ns);
    if (code >= 0)
        return code;
    struct memcg_cost cost;
    struct error e = {""};
    struct buf notes = BUF_INIT;
    const struct memcg_cost_options o = {.row_ns = time_ns / MEMCG_COST_ROWS, .charges_only = !time_ns};
    const int bad = memcg_cost_measure(&o, &cost, &e);
    if (bad)
        return command_fail(bad == -EIO ? EXIT_FAILED : EXIT_IMPOSSIBLE, "%s", e.text);
    struct table *t = memcg_table_new(&cost);
    struct sink out = sink_to_file(stdout);
    const struct text_style style = terminal_style(stdout);
    if (command_value(c, a, "json")) {
        table_view_json(&out, t);
    } else {
        t->hidden = MEMCG_NOTED;
        table_view_text(&out, t, &style);
        memcg_table_notes(&cost, &notes);
        sink_printf(&out, "\n%s", buf_str(&notes));
    }
    buf_release(&notes);
    table_free(t);
    return command_written(&out, EXIT_DONE);
}
