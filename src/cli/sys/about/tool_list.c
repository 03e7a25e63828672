/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/about/tool_list.h"

#include <string.h>

#include "cli/terminal.h"
#include "model/table/table.h"
#include "sys/privileges.h"
#include "sys/session.h"
#include "view/table/table_view.h"

enum column { TOOL, ATTACH, COST, SHOWS, LACKS, WHY_NOT };

static const struct table_column columns[] = {
    [TOOL] = {"tool", TABLE_PLAIN, TABLE_TEXT},
    [ATTACH] = {"attach", TABLE_PLAIN, TABLE_TEXT},
    [COST] = {"event_cost", TABLE_DURATION, TABLE_WHOLE, .header = "event cost"},
    [SHOWS] = {"shows", TABLE_PLAIN, TABLE_TEXT, .shrinkable = true},
    [LACKS] = {"cannot_show", TABLE_PLAIN, TABLE_TEXT, .header = "cannot show here", .wrap = true,
               .hide_if_empty = true},
    [WHY_NOT] = {"why_not", TABLE_PLAIN, TABLE_TEXT, .header = "why not", .wrap = true,
                 .hide_if_empty = true},
};

/* A summary is "show ...". */
static const char *shown_by(const struct sys_tool *tool)
{
    size_t len = strlen("show ");
    return strncmp(tool->summary, "show ", len) ? tool->summary : tool->summary + len;
}

static void add_attached(struct table *t, const struct sys_tool *tool)
{
    struct sys_settings settings = {{0}};
    struct sys_session *s;
    struct error e = {""};
    if (sys_open(&s, tool, &settings, &e)) {
        table_text(t, WHY_NOT, e.text);
        return;
    }
    table_text(t, ATTACH, s->method->name);
    table_text(t, LACKS, s->lacks.len ? buf_str(&s->lacks) : NULL);
    sys_close(s);
}

/* `unknown`: why the methods cannot be tried; NULL: they can. */
static void add_tool(struct table *t, const struct sys_tool *tool, const char *unknown)
{
    table_row(t);
    table_text(t, TOOL, tool->name);
    table_text(t, SHOWS, shown_by(tool));
    if (tool->explanation && tool->explanation->event_ns)
        table_whole(t, COST, tool->explanation->event_ns);
    if (unknown)
        table_text(t, WHY_NOT, unknown);
    else
        add_attached(t, tool);
}

static int refuse_others(const struct command *c, const struct arguments *a)
{
    static const char *const fit[] = {"list", "json", "columns", "wide", "exact"};
    for (const struct option_doc *o = c->options; o->name; o++) {
        bool fits = !command_value(c, a, o->name);
        for (size_t i = 0; i < sizeof(fit) / sizeof(*fit); i++)
            fits = fits || !strcmp(o->name, fit[i]);
        if (!fits)
            return command_misuse(c, "--list lists the tools: leave out --%s", o->name);
    }
    return a->n_rest ? command_misuse(c, "--list lists the tools: leave out %s", a->rest[0]) : -1;
}

int tool_list(const struct command *c, const struct arguments *a)
{
    int code = refuse_others(c, a);
    if (code >= 0)
        return code;
    struct buf missing = BUF_INIT, unknown = BUF_INIT;
    privileges_missing(&missing);
    if (missing.len)
        buf_printf(&unknown, "which way to attach works here is not known without %s: run it as root (sudo)",
                   buf_str(&missing));
    struct table *t = table_new("sys-list", 1, columns, sizeof(columns) / sizeof(*columns));
    for (const struct sys_tool *const *tool = sys_tools; *tool; tool++)
        add_tool(t, *tool, unknown.len ? buf_str(&unknown) : NULL);
    struct sink out = sink_to_file(stdout);
    struct text_style style = terminal_style(stdout);
    if (command_value(c, a, "json")) {
        table_view_json(&out, t);
    } else {
        t->hidden = unknown.len ? 1u << WHY_NOT | 1u << ATTACH : 0; /* one line has it for all */
        table_view_text(&out, t, &style);
    }
    table_free(t);
    code = command_written(&out, EXIT_DONE);
    if (unknown.len)
        command_fail(0, "%s", buf_str(&unknown));
    buf_release(&missing);
    buf_release(&unknown);
    return code;
}
