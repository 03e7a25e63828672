/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_RECORD_FIELD_H
#define COLLECT_RECORD_FIELD_H

/*
 * Numbers in a record of the kernel's trace buffers: where they are, as libtraceevent reads it from an event's format
 * file, and their values.
 *
 * Runs in: the tool. Threads: pure.
 */

#include <event-parse.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct record_field {
    uint16_t at, bytes; /* bytes 0: the event has no such field */
};

/** Returns where the field of this name is; one of more than `most` bytes is none. `name` may be NULL. */
static inline struct record_field record_field_find(struct tep_event *event, const char *name, int most)
{
    const struct tep_format_field *field = name ? tep_find_any_field(event, name) : NULL;
    const bool fits =
        field && field->offset >= 0 && field->offset <= INT16_MAX && field->size > 0 && field->size <= most;
    return fits ? (struct record_field){(uint16_t)field->offset, (uint16_t)field->size}
                : (struct record_field){0, 0};
}

/** Returns the first byte behind it. */
static inline uint32_t record_field_end(struct record_field f)
{
    return (uint32_t)f.at + f.bytes;
}

/** Returns its value, without a sign; 0: there is no such field. It has at most 8 bytes, and lies in the record. */
static inline uint64_t record_field_value(const uint8_t *data, struct record_field f)
{
    uint64_t value = 0; /* little-endian, as the trace of this machine is */
    if (f.bytes == 8)
        memcpy(&value, data + f.at, 8);
    else if (f.bytes == 4)
        memcpy(&value, data + f.at, 4);
    else
        memcpy(&value, data + f.at, f.bytes);
    return value;
}

/** Parses the text of an event's format, in a handle that the caller frees with tep_free(). NULL: it is none. */
static inline struct tep_event *record_field_parse(struct tep_handle **tep, const char *name,
                                                   const char *text, size_t bytes)
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

#endif
