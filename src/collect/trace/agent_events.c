/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/agent_events.h"

#include "wire/event_schema.h"

#define FIELD(field, kind)           {.name = #field, .type = EVENT_##kind, .bytes = 8},
#define EVENT(number, event, fields) static const struct event_field fields_of_##event[] = {fields};
EVENT_SCHEMA(EVENT, FIELD)
#undef EVENT

static const struct event_class classes[] = {
#define EVENT(number, event, fields)                                                                         \
    {"allium:" #event, number, sizeof(fields_of_##event) / sizeof(struct event_field), fields_of_##event},
    EVENT_SCHEMA(EVENT, EVENT_SCHEMA_NO_FIELD)
#undef EVENT
};

const struct event_class *agent_events(uint32_t *n)
{
    *n = sizeof(classes) / sizeof(classes[0]);
    return classes;
}
