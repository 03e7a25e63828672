/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_EVENT_CLASS_H
#define BASE_SIGSAFE_EVENT_CLASS_H

/*
 * What the events of one kind look like: their name and their fields. The metadata of CTF, JSON keys and columns are
 * made from it. Behind the two first words of an event (struct ring_event) its fields lie as in a structure of C: each
 * at a multiple of its size, texts anywhere.
 *
 * Runs in: target, tool. Pure data.
 */

#include <stdint.h>

enum event_type {
    EVENT_UNSIGNED,
    EVENT_SIGNED,
    EVENT_HEX,   /* unsigned, an address for example */
    EVENT_BYTES, /* unsigned, a number of bytes */
    EVENT_FLOAT,
    EVENT_ENUM, /* signed, with names for some values */
    EVENT_TEXT, /* UTF-8, ends at the first NUL or with the field */
    EVENT_TYPES
};

struct event_label {
    const char *name;
    int64_t value;
};

struct event_field {
    const char *name;
    enum event_type type;
    uint32_t bytes; /* 1, 2, 4 or 8; EVENT_FLOAT: 4 or 8; EVENT_TEXT: any number but 0 */
    uint32_t n_labels;
    const struct event_label *labels; /* EVENT_ENUM */
};

struct event_class {
    const char *name; /* PROVIDER:NAME */
    uint16_t id;
    uint16_t n_fields;
    const struct event_field *fields;
};

#define EVENT_FIELDS_MAX 64u
#define EVENT_BYTES_MAX  4080u /* of the fields: 4 KiB with what is before them */

/** Returns where a field lies if the one before ends at `end`, in bytes from the first field on. */
static inline uint32_t event_field_at(const struct event_field *f, uint32_t end)
{
    return f->type == EVENT_TEXT ? end : (end + f->bytes - 1) & ~(f->bytes - 1);
}

/** Returns the bytes of the fields. The size of the event is that of whole words. */
static inline uint32_t event_class_bytes(const struct event_class *c)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < c->n_fields; i++)
        end = event_field_at(&c->fields[i], end) + c->fields[i].bytes;
    return end;
}

#endif
