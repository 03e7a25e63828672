/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_OBJECT_MAP_H
#define TARGET_OBJECT_MAP_H

/*
 * The map of objects: for each 16 bytes of address space an entry of 4 bytes, which has the account and the size of the
 * object that begins there. Odd multiples of 8, which few allocators give out, have entries of their own, at a fixed
 * distance from the others. The size of an object above OBJECTS_BYTES_INLINE stands in a word of the page in which it
 * begins: no two such objects begin in one page.
 *
 * Address space for tables is reserved in chunks; a table is made writable when the first object is entered in its unit
 * of 4 MiB. Only then does the kernel count it as data of the program.
 *
 * Runs in: target. Threads: any; an object's entry belongs to whoever makes or frees the object.
 * Owns: private anonymous memory, 4 bytes for each 16 that objects touch. The kernel wipes it in fork children: the
 * objects that they free of their parent are not theirs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/object_map_layout.h"

struct object {
    uint32_t account;
    uint64_t bytes;
};

/** The directory, for threads that have words; NULL: there is no memory. */
uintptr_t *object_map_tables(void);
/**
 * In a fork child, when it begins: what is in by now was entered by what a handler interrupted that forked, for the
 * parent.
 */
void object_map_begin_anew(void);
/** Enters it. False: there is no memory for its table. */
bool object_map_put(uintptr_t address, struct object o);
/** Makes tables for `bytes` of addresses where memory is likely to be mapped next: before none can be made any more. */
void object_map_take_room(uint64_t bytes);
/* The agent comes first as a rule: what the library then reserves shall not lie where the agent looks ahead. */
#define OBJECT_MAP_ROOM_TAGS  (1ull << 30)
#define OBJECT_MAP_ROOM_SITES (3ull << 30)
/**
 * A program that makes small objects at the address is likely to make more above it: room for those of the next MiB is
 * made at once, as a fault for each page of the map, or two, costs as much as hundreds of objects. Now and then, as
 * with samples.
 */
void object_map_expect_more(uintptr_t address);
/** Is it in? */
bool object_map_has(uintptr_t address);
/** Takes it out; false: nothing of ours begins there. */
bool object_map_take(uintptr_t address, struct object *o);
/**
 * As object_map_take(), of a large object that begins in the same page as the new large one at `address`: it can be
 * there no more, and its place is about to be taken.
 */
bool object_map_take_from_page(uintptr_t address, struct object *o);
/** A directory without tables, for threads that must not write to the map. */
extern uintptr_t object_map_none_words[2];
#define object_map_none (object_map_none_words + 1)

#endif
