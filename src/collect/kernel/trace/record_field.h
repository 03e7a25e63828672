/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_RECORD_FIELD_H
#define COLLECT_RECORD_FIELD_H

/*
 * Numbers in a record of the kernel's trace buffers: where they are, as libtraceevent reads it from an event's format
 * file, and their values.
 *
 * Runs in: the tool. Threads: pure.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tep_event;
struct tep_handle;

struct record_field {
    uint16_t at, bytes; /* bytes 0: the event has no such field */
};

/** Parses the text of an event's format, in a handle that the caller frees with tep_free(). NULL: no such text. */
struct tep_event *record_field_parse(struct tep_handle **tep, const char *name, const char *text,
                                     size_t bytes);
/** Returns the place of the field with this name; `bytes` is 0 if there is none, or it is of more than `most` bytes. */
struct record_field record_field_find(struct tep_event *event, const char *name, int most);

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

#endif
