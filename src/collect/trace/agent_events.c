/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/agent_events.h"

#include <string.h>

#include "wire/ledger.h"

#define FIELD(field, kind) {.name = #field, .type = EVENT_##kind, .bytes = 8},
#define EVENT(number, constant, name, fields)                                                                \
    static const struct event_field fields_of_##constant[] = {fields};
EVENT_SCHEMA(EVENT, FIELD)
#undef EVENT
#define TEXT(field, n)              {.name = #field, .type = EVENT_TEXT, .bytes = (n)},
#define EVENT(number, name, fields) static const struct event_field fields_of_##name[] = {fields};
EVENT_SCHEMA_LIFE(EVENT, FIELD, TEXT)
EVENT_SCHEMA_TAG(EVENT, FIELD, TEXT)
#undef EVENT

static const struct event_class classes[] = {
#define EVENT(number, constant, name, fields)                                                                \
    {"allium:" #name, number, sizeof(fields_of_##constant) / sizeof(struct event_field),                     \
     fields_of_##constant},
    EVENT_SCHEMA(EVENT, EVENT_SCHEMA_NO_FIELD)
#undef EVENT
#define EVENT(number, name, fields)                                                                          \
    {"allium:" #name, number, sizeof(fields_of_##name) / sizeof(struct event_field), fields_of_##name},
        EVENT_SCHEMA_LIFE(EVENT, EVENT_SCHEMA_NO_FIELD, EVENT_SCHEMA_NO_FIELD)
            EVENT_SCHEMA_TAG(EVENT, EVENT_SCHEMA_NO_FIELD, EVENT_SCHEMA_NO_FIELD)
#undef EVENT
};

const struct event_class *agent_events(uint32_t *n)
{
    *n = sizeof(classes) / sizeof(classes[0]);
    return classes;
}

bool agent_events_read(const struct trace_event *event, struct agent_event *out)
{
    const uint32_t known_bytes = event_class_bytes(event->class);
    uint32_t bytes = 0;
    if (strcmp(event->domain, "ust"))
        return false;
    *out = (struct agent_event){.id = event_id_plain(event->class->id), .stack = LEDGER_NONE};
#define READ(field, kind)                                                                                    \
    if (bytes + 8 > known_bytes)                                                                             \
        return false;                                                                                        \
    memcpy(&out->field, event->fields + bytes, 8);                                                           \
    bytes += 8;
#define CASE(number, constant, name, fields)                                                                 \
    case number:                                                                                             \
        fields return bytes == known_bytes;
    switch (event->class->id) {
        EVENT_SCHEMA(CASE, READ)
    }
#undef CASE
#undef READ
    return false;
}
