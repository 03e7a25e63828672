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
 * The classes with _begin, and free_end, are the group `begin`: they give the time at which a call began, or returned.
 * The call's other event has the class without _begin or _end. The classes none_* are those of --stacks none; the
 * classes full_* those of allocations with --stacks full.
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
    E(61, full_realloc_end, realloc_end, F(ptr, HEX) F(size, BYTES) F(site, HEX) F(stack, UNSIGNED))

/*
 * The group `life`, which is always on: L(number, name, fields). The fields are words, F(field, type), and at their end
 * T(field, bytes), a text. A thread begins when it first allocates or frees, a module when it first does so.
 */
#define EVENT_PATH_BYTES 256
#define EVENT_SCHEMA_LIFE(L, F, T)                                                                           \
    L(16, process_begin, F(parent, UNSIGNED) F(parent_image, HEX) T(name, 16))                               \
    L(17, process_exit, F(threads, UNSIGNED))                                                                \
    L(18, thread_begin, T(name, 16))                                                                         \
    L(19, thread_end, T(name, 16))                                                                           \
    L(20, exec, F(pid, UNSIGNED) T(path, EVENT_PATH_BYTES))                                                  \
    L(21, exec_failed, F(error, UNSIGNED))                                                                   \
    L(22, module_loaded, F(start, HEX) F(end, HEX) T(path, EVENT_PATH_BYTES))                                \
    L(23, module_unloaded, F(start, HEX) F(end, HEX) T(path, EVENT_PATH_BYTES))

/* The group `tag`: a call of a code tag (allium/tag.h), with the tag's class and name. `ptr` 0: it failed. */
#define EVENT_TAG_CLASS_BYTES 32
#define EVENT_TAG_NAME_BYTES  64
#define EVENT_SCHEMA_TAG(L, F, T)                                                                            \
    L(32, tag_call,                                                                                          \
      F(ptr, HEX) F(size, BYTES) F(duration_ns, UNSIGNED) F(site, HEX) T(class, EVENT_TAG_CLASS_BYTES)       \
          T(name, EVENT_TAG_NAME_BYTES))

#define EVENT_SCHEMA_NO_FIELD(name, type)
enum event_id {
#define X(number, constant, name, fields) EVENT_##constant = number,
    EVENT_SCHEMA(X, EVENT_SCHEMA_NO_FIELD)
#undef X
#define X(number, name, fields) EVENT_##name = number,
        EVENT_SCHEMA_LIFE(X, EVENT_SCHEMA_NO_FIELD, EVENT_SCHEMA_NO_FIELD)
            EVENT_SCHEMA_TAG(X, EVENT_SCHEMA_NO_FIELD, EVENT_SCHEMA_NO_FIELD)
#undef X
                EVENT_ID_OWN = 64
};

/* From an event to the one of the same name without a site. */
#define EVENT_NONE(id) ((enum event_id)((id) + (EVENT_none_malloc - EVENT_malloc)))

/** Returns whether the event is of the group `life`. */
static inline int event_id_is_life(unsigned id)
{
    return id >= EVENT_process_begin && id <= EVENT_module_unloaded;
}

/** Returns the class with a site that has the same name, and the same first fields. */
static inline enum event_id event_id_plain(unsigned id)
{
    if (id == EVENT_full_realloc_end)
        return EVENT_realloc_end;
    return (enum event_id)(
        id >= EVENT_full_malloc && id < EVENT_full_realloc_end ? id - (EVENT_full_malloc - EVENT_malloc)
        : id >= EVENT_none_malloc && id <= EVENT_none_free_end ? id - (EVENT_none_malloc - EVENT_malloc)
                                                               : id);
}

#endif
