/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/events/event_fields.h"

const char *event_fields_text(char out[static EVENT_BYTES_MAX + 1], const struct event_field *f,
                              const unsigned char *at)
{
    memcpy(out, at, f->bytes);
    out[f->bytes] = '\0';
    return out;
}

void event_fields_json(struct json *j, const char *key, const struct event_field *f, const unsigned char *at)
{
    char text[EVENT_BYTES_MAX + 1];
    const uint64_t value = trace_event_number(f, at);
    const char *label = f->type == EVENT_ENUM ? trace_event_label(f, (int64_t)value) : NULL;
    switch (f->type) {
    case EVENT_TEXT:
        json_text(j, key, event_fields_text(text, f, at));
        break;
    case EVENT_HEX:
        json_hex(j, key, value);
        break;
    case EVENT_FLOAT:
        json_real(j, key, trace_event_real(f, at));
        break;
    case EVENT_ENUM:
    case EVENT_SIGNED:
        if (label)
            json_text(j, key, label);
        else
            json_signed(j, key, (int64_t)value);
        break;
    default:
        json_whole(j, key, value);
    }
}
