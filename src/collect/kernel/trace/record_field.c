/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/record_field.h"

#include <event-parse.h>
#include <stdbool.h>

struct tep_event *record_field_parse(struct tep_handle **tep, const char *name, const char *text,
                                     size_t bytes)
{
    *tep = tep_alloc();
    if (!*tep)
        return NULL;
    tep_set_loglevel(TEP_LOG_NONE);
    /* The last part of the text, which says how to print a record, may be one that the library does not know. */
    tep_parse_event(*tep, text, bytes, "any");
    struct tep_event *event = tep_find_event_by_name(*tep, "any", name);
    return event && event->id > 0 && event->id <= UINT16_MAX ? event : NULL;
}

struct record_field record_field_find(struct tep_event *event, const char *name, int most)
{
    const struct tep_format_field *field = name ? tep_find_any_field(event, name) : NULL;
    const bool fits =
        field && field->offset >= 0 && field->offset <= INT16_MAX && field->size > 0 && field->size <= most;
    return fits ? (struct record_field){(uint16_t)field->offset, (uint16_t)field->size}
                : (struct record_field){0, 0};
}
