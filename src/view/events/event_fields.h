/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_EVENT_FIELDS_H
#define VIEW_EVENT_FIELDS_H

/*
 * The values of an event's fields, as texts and in JSON.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/trace/trace_event.h"
#include "view/formats/json.h"

/** Copies a field of text, which may lack a NUL, and returns the copy. */
const char *event_fields_text(char out[static EVENT_BYTES_MAX + 1], const struct event_field *f,
                              const unsigned char *at);
/** Writes a value: numbers of bytes and others as numbers, addresses and labels as texts. */
void event_fields_json(struct json *j, const char *key, const struct event_field *f, const unsigned char *at);

#endif
