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

/*
 * E(number, constant, name, F(field, type) ...); the types are those of enum event_type. `site`: a return address;
 * `stack`: the index of a stack in the ledger of the image, whose innermost call is the site.
 *
 * The classes with _begin, and free_end, are the group `begin`: they tell when a call began, or returned, whose other
 * event has the class without it. The classes none_* and full_* are those of --stacks none and full.
 */
#define EVENT_SCHEMA(E, F)                                                                                   \
    E(1, malloc, malloc, F(ptr, HEX) F(size, BYTES) F(site, HEX))                                            \
    E(2, calloc, calloc, F(ptr, HEX) F(size, BYTES) F(site, HEX))                                            \
    E(3, memalign, memalign, F(ptr, HEX) F(size, BYTES) F(site, HEX))                                        \
    E(4, realloc_begin, realloc_begin, F(ptr, HEX) F(site, HEX))                                             \
    E(5, realloc_end, realloc_end, F(ptr, HEX) F(size, BYTES) F(site, HEX))                                  \
    E(6, free, free, F(ptr, HEX) F(site, HEX))                                                               \
    E(7, malloc_begin, malloc_begin, F(size, BYTES) F(site, HEX))                                            \
    E(8, calloc_begin, calloc_begin, F(size, BYTES) F(site, HEX))                                            \
    E(9, memalign_begin, memalign_begin, F(size, BYTES) F(site, HEX))                                        \
    E(10, free_end, free_end, F(ptr, HEX) F(site, HEX))                                                      \
    E(48, none_malloc, malloc, F(ptr, HEX) F(size, BYTES))                                                   \
    E(49, none_calloc, calloc, F(ptr, HEX) F(size, BYTES))                                                   \
    E(50, none_memalign, memalign, F(ptr, HEX) F(size, BYTES))                                               \
    E(51, none_realloc_begin, realloc_begin, F(ptr, HEX))                                                    \
    E(52, none_realloc_end, realloc_end, F(ptr, HEX) F(size, BYTES))                                         \
    E(53, none_free, free, F(ptr, HEX))                                                                      \
    E(54, none_malloc_begin, malloc_begin, F(size, BYTES))                                                   \
    E(55, none_calloc_begin, calloc_begin, F(size, BYTES))                                                   \
    E(56, none_memalign_begin, memalign_begin, F(size, BYTES))                                               \
    E(57, none_free_end, free_end, F(ptr, HEX))                                                              \
    E(58, full_malloc, malloc, F(ptr, HEX) F(size, BYTES) F(site, HEX) F(stack, UNSIGNED))                   \
    E(59, full_calloc, calloc, F(ptr, HEX) F(size, BYTES) F(site, HEX) F(stack, UNSIGNED))                   \
    E(60, full_memalign, memalign, F(ptr, HEX) F(size, BYTES) F(site, HEX) F(stack, UNSIGNED))               \
    E(61, full_realloc_end, realloc_end, F(ptr, HEX) F(size, BYTES) F(site, HEX) F(stack, UNSIGNED))         \
    E(62, full_free, free, F(ptr, HEX) F(site, HEX) F(stack, UNSIGNED))

#define EVENT_SCHEMA_NO_FIELD(name, type)
enum event_id {
#define X(number, constant, name, fields) EVENT_##constant = number,
    EVENT_SCHEMA(X, EVENT_SCHEMA_NO_FIELD)
#undef X
        EVENT_ID_OWN = 64
};

/* From an event to the one of the same name without a site. */
#define EVENT_NONE(id) ((enum event_id)((id) + (EVENT_none_malloc - EVENT_malloc)))

/** Returns the class with a site that has the same name, and the same first fields. */
static inline enum event_id event_id_plain(unsigned id)
{
    switch (id) {
    case EVENT_full_realloc_end:
        return EVENT_realloc_end;
    case EVENT_full_free:
        return EVENT_free;
    default:
        return (enum event_id)(
            id >= EVENT_full_malloc && id < EVENT_full_realloc_end ? id - (EVENT_full_malloc - EVENT_malloc)
            : id >= EVENT_none_malloc && id <= EVENT_none_free_end ? id - (EVENT_none_malloc - EVENT_malloc)
                                                                   : id);
    }
}

#endif
