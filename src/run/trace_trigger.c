/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace_trigger.h"

#include <errno.h>
#include <string.h>

#include "base/units.h"

static int add_alert(struct trace_triggers *t, const char *text, struct error *e)
{
    if (t->n_alerts == TRACE_ALERTS_MAX)
        return error_set(e, EINVAL, "more than %d conditions: join them with or", TRACE_ALERTS_MAX);
    struct alert *a = &t->alerts[t->n_alerts];
    if (alert_parse(a, text, NULL, NULL))
        return error_set(e, EINVAL,
                         "unknown trigger '%s': use exit!=0, signal, every:DURATION or a condition, as in "
                         "'live>1G for 5m'",
                         text);
    t->n_alerts++;
    for (size_t i = 0; i < a->n; i++)
        if (a->terms[i].kind == ALERT_GROWING)
            return error_set(e, EINVAL,
                             "'%s' is judged by allium watch --alert, whose --exec can run allium snapshot; "
                             "here use live>SIZE",
                             text);
    return 0;
}

int trace_triggers_add(struct trace_triggers *t, const char *text, struct error *e)
{
    static const char every[] = "every:";
    if (!strcmp(text, "exit!=0"))
        t->exit = true;
    else if (!strcmp(text, "signal"))
        t->signal = true;
    else if (strncmp(text, every, sizeof(every) - 1))
        return add_alert(t, text, e);
    else if (units_parse_duration(text + sizeof(every) - 1, &t->every_ns) || t->every_ns < 1000000000u)
        return error_set(e, EINVAL, "invalid %s: use a duration of 1s or more, as in every:10m", text);
    return 0;
}

void trace_triggers_release(struct trace_triggers *t)
{
    for (unsigned i = 0; i < t->n_alerts; i++)
        alert_release(&t->alerts[i]);
}
