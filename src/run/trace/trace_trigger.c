/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/trace_trigger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/units.h"
#include "collect/trace/agent_events.h"
#include "model/trace/event_query.h"
#include "run/trace/event_trigger.h"

#define SNAPSHOT_EVENT "allium:snapshot" /* of ALLIUM_SNAPSHOT() */

static int add_alert(struct trace_triggers *t, const char *text, struct error *e)
{
    if (t->n_alerts == TRACE_ALERTS_MAX)
        return error_set(e, EINVAL, "more than %d conditions: join them with or", TRACE_ALERTS_MAX);
    if (alert_parse(&t->alerts[t->n_alerts], text, NULL, NULL))
        return error_set(
            e, EINVAL,
            "unknown trigger '%s': use exit!=0, signal, every:DURATION, 'event:NAME where QUERY' "
            "or a condition, as in 'live>1G for 5m' or 'growing for 2h'",
            text);
    t->n_alerts++;
    return 0;
}

/* The program's events are known when they come; those of the agent are known now. */
static int check_event(const struct trace_event_trigger *t, struct error *e)
{
    struct buf names = BUF_INIT;
    struct event_query *query = NULL;
    uint32_t n;
    bool known = false;
    int bad = 0;
    const struct event_class *classes = agent_events(&n);
    for (uint32_t i = 0; !bad && i < n; i++) {
        const struct event_class *class = &classes[i];
        buf_printf(&names, "%s%s", i ? ", " : "", trace_event_name(class));
        if (!event_trigger_names(t->name, class))
            continue;
        known = true;
        bad = event_trigger_query(&query, t, class, e);
        event_query_free(query);
        query = NULL;
    }
    if (!known && (!strchr(t->name, ':') || !strncmp(t->name, "allium:", 7)) &&
        strcmp(t->name, SNAPSHOT_EVENT) != 0)
        bad = error_set(e, EINVAL, "unknown event %s: use one of %s, or PROVIDER:NAME of the program",
                        t->name, buf_str(&names));
    buf_release(&names);
    return bad;
}

static int add_event(struct trace_triggers *t, const char *text, struct error *e)
{
    static const char where[] = " where ";
    const size_t bytes = strcspn(text, " ");
    const char *rest = text + bytes;
    if (t->n_events == TRACE_EVENTS_MAX)
        return error_set(e, EINVAL, "more than %d events: use a pattern as in event:shop:*",
                         TRACE_EVENTS_MAX);
    if (!bytes || strcspn(text, ",!") < bytes ||
        (*rest && (strncmp(rest, where, sizeof(where) - 1) || !rest[sizeof(where) - 1])))
        return error_set(e, EINVAL,
                         "invalid event:%s: use event:NAME or 'event:NAME where QUERY', as in "
                         "'event:malloc where size>1M'",
                         text);
    if (!strncmp(text, "kernel:", 7))
        return error_set(e, EINVAL, "event:%s: events of the kernel are no triggers: use one of the program",
                         text);
    struct trace_event_trigger *event = &t->events[t->n_events++];
    event->name = mem_strndup(text, bytes);
    event->query = *rest ? mem_strdup(rest + sizeof(where) - 1) : NULL;
    return check_event(event, e);
}

int trace_triggers_add(struct trace_triggers *t, const char *text, struct error *e)
{
    static const char every[] = "every:", event[] = "event:";
    if (!strcmp(text, "exit!=0"))
        t->exit = true;
    else if (!strncmp(text, event, sizeof(event) - 1))
        return add_event(t, text + sizeof(event) - 1, e);
    else if (!strcmp(text, "signal"))
        ; /* always */
    else if (strncmp(text, every, sizeof(every) - 1))
        return add_alert(t, text, e);
    else if (units_parse_duration(text + sizeof(every) - 1, &t->every_ns) || t->every_ns < 1000000000u)
        return error_set(e, EINVAL, "invalid %s: use a duration of 1s or more, as in every:10m", text);
    return 0;
}

char *trace_triggers_events(const struct trace_triggers *t, const char *list)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s," SNAPSHOT_EVENT, list ? list : "alloc");
    for (unsigned i = 0; i < t->n_events; i++)
        if (strchr(t->events[i].name, ':') && strncmp(t->events[i].name, "allium:", 7) != 0)
            buf_printf(&b, ",%s", t->events[i].name);
    return buf_detach(&b);
}

void trace_triggers_release(struct trace_triggers *t)
{
    for (unsigned i = 0; i < t->n_alerts; i++)
        alert_release(&t->alerts[i]);
    for (unsigned i = 0; i < t->n_events; i++) {
        free(t->events[i].name);
        free(t->events[i].query);
    }
}
