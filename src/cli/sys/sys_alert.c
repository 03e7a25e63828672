/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_alert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/command.h"
#include "view/table/table_view.h"
#include "view/text/text.h"

/* Cuts " for TIME" off the end of the text. 0 or -EINVAL. */
static int cut_duration(char *text, uint64_t *ns, struct error *e)
{
    char *at = NULL;
    for (char *next = text; (next = strstr(next, " for ")); next++)
        at = next;
    if (!at)
        return 0;
    if (units_parse_duration(at + 5, ns))
        return error_set(e, EINVAL, "--alert: invalid time '%s' after for: use 30s, 5m or 1h30m", at + 5);
    *at = '\0';
    return 0;
}

int sys_alert_init(struct sys_alert *a, const char *text, const char *command, const struct table *columns_of,
                   bool events, struct error *e)
{
    *a = (struct sys_alert){.events = events};
    if (!text)
        return command ? error_set(e, EINVAL, "--exec needs --alert CONDITION: --help lists the columns") : 0;
    char *query = mem_strdup(text);
    int bad = cut_duration(query, &a->for_ns, e);
    if (!bad && events && a->for_ns)
        bad = error_set(e, EINVAL, "--alert: an event has no duration: leave out \"for\"");
    struct error why = {""};
    if (!bad && (bad = table_query_init(&a->query, query, columns_of->columns, columns_of->n_columns, &why)))
        error_set(e, EINVAL, "--alert: %s", why.text);
    free(query);
    if (bad)
        return bad;
    a->text = mem_strdup(text);
    a->exec = command ? alert_exec_new(command) : NULL;
    return 0;
}

void sys_alert_release(struct sys_alert *a)
{
    free(a->text);
    table_query_release(&a->query);
    alert_exec_free(a->exec);
    *a = (struct sys_alert){0};
}

static char *variable(const char *name, const char *value)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s=%s", name, value);
    return buf_detach(&b);
}

static void report_row(struct sys_alert *a, const char *tool, const struct table *t, uint32_t row)
{
    struct error e = {""};
    struct buf json = BUF_INIT;
    struct sink out = sink_to_buf(&json);
    table_view_json_row(&out, t, row);
    if (json.len && json.data[json.len - 1] == '\n')
        json.data[--json.len] = '\0';
    fprintf(stderr, "allium: alert: %s: %s\n", a->text, buf_str(&json));
    if (a->exec) {
        char **variables = mem_array(4, sizeof(*variables));
        variables[0] = variable("ALLIUM_ALERT", a->text);
        variables[1] = variable("ALLIUM_TOOL", tool);
        variables[2] = variable("ALLIUM_ROW", buf_str(&json));
        if (alert_exec_add(a->exec, variables, &e))
            command_fail(EXIT_FAILED, "%s", e.text);
    }
    buf_release(&json);
}

void sys_alert_check(struct sys_alert *a, const char *tool, const struct table *t, uint64_t now_ns)
{
    uint32_t fits = UINT32_MAX;
    if (!a->text)
        return;
    for (uint32_t row = 0; row < table_rows(t); row++) {
        if (!table_query_fits(&a->query, t, row))
            continue;
        fits = fits == UINT32_MAX ? row : fits;
        if (a->events)
            report_row(a, tool, t, row);
    }
    if (a->events)
        return;
    if (fits == UINT32_MAX) {
        a->since_ns = 0;
        a->reported = false;
        return;
    }
    a->since_ns = a->since_ns ? a->since_ns : now_ns;
    if (!a->reported && now_ns - a->since_ns >= a->for_ns) {
        a->reported = true;
        report_row(a, tool, t, fits);
    }
}

static void report_waiting(unsigned n)
{
    struct buf b = BUF_INIT;
    text_add_words(&b, n, "alert{s} {was|were} still waiting for the command of --exec");
    fprintf(stderr, "allium: %s\n", buf_str(&b));
    buf_release(&b);
}

void sys_alert_end(const struct sys_alert *a)
{
    if (a->exec && alert_exec_waiting(a->exec))
        report_waiting(alert_exec_waiting(a->exec));
}

void sys_alert_step(struct sys_alert *a)
{
    struct error e = {""};
    int status;
    if (a->exec && alert_exec_step(a->exec, &status, &e))
        command_fail(EXIT_FAILED, "%s", e.text);
}
