/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_EVENT_SCHEMA_H
#define WIRE_EVENT_SCHEMA_H

/*
 * The events of a trace that the agent writes: for each a number, a name and its fields, one word each, in this order.
 * The agent's calls, the metadata of CTF and all that reads a trace are made from this list. Numbers from
 * EVENT_ID_OWN on are those of the program's own events: liballium.so numbers them in each image (wire/event_table.h),
 * and the tool gives them numbers of the whole trace (collect/trace/user_classes.h).
 *
 * Runs in: target, tool. Pure data.
 */

#include <stdint.h>

/* E(number, name, F(field, type) ...); the types are those of enum event_type. `site`: a return address. */
#define EVENT_SCHEMA(E, F)                                                                                   \
    E(1, malloc, F(ptr, HEX) F(size, BYTES) F(site, HEX))                                                    \
    E(2, calloc, F(ptr, HEX) F(size, BYTES) F(site, HEX))                                                    \
    E(3, memalign, F(ptr, HEX) F(size, BYTES) F(site, HEX))                                                  \
    E(4, realloc_begin, F(ptr, HEX) F(site, HEX))                                                            \
    E(5, realloc_end, F(ptr, HEX) F(size, BYTES) F(site, HEX))                                               \
    E(6, free, F(ptr, HEX) F(site, HEX))

#define EVENT_SCHEMA_NO_FIELD(name, type)
enum event_id {
#define X(number, name, fields) EVENT_##name = number,
    EVENT_SCHEMA(X, EVENT_SCHEMA_NO_FIELD)
#undef X
        EVENT_ID_OWN = 64
};

#endif
