/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_EVENT_SCHEMA_H
#define WIRE_EVENT_SCHEMA_H

/*
 * The events of a trace that the agent writes: for each a number, a name and its fields, one word each, in this order.
 * The agent's calls, the metadata of CTF and all that reads a trace are made from this list.
 *
 * Runs in: target, tool. Pure data.
 */

#include <stdint.h>

/* E(number, name, F(field, type) ...): types are hex, size (bytes) and number. */
#define EVENT_SCHEMA(E, F)                                                                                   \
    E(1, malloc, F(ptr, hex) F(size, size) F(site, hex))                                                     \
    E(2, calloc, F(ptr, hex) F(size, size) F(site, hex))                                                     \
    E(3, memalign, F(ptr, hex) F(size, size) F(site, hex))                                                   \
    E(4, realloc_begin, F(ptr, hex) F(site, hex))                                                            \
    E(5, realloc_end, F(ptr, hex) F(size, size) F(site, hex))                                                \
    E(6, free, F(ptr, hex) F(site, hex))

#define EVENT_SCHEMA_NO_FIELD(name, type)
enum event_id {
#define X(number, name, fields) EVENT_##name = number,
    EVENT_SCHEMA(X, EVENT_SCHEMA_NO_FIELD)
#undef X
};

#endif
