/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_OBJECT_MAP_H
#define TARGET_OBJECT_MAP_H

/*
 * The map of objects: for each live object its account and its size. Each 16 bytes of address space have an entry of
 * 4 bytes, for the object that begins there. An address that is an odd multiple of 8, which few allocators return,
 * has an entry elsewhere, at a fixed distance from the others. If an object is larger than OBJECTS_BYTES_INLINE, its
 * size is in a word that belongs to its first page; no two such objects begin in one page.
 *
 * Address space for the tables is reserved in chunks. A table is made writable when the first object in its unit of 4
 * MiB is entered. Only then does the kernel count the table as data of the program.
 *
 * Runs in: target. Threads: any. Only the thread that allocates or frees an object writes to its entry.
 * Owns: private anonymous memory, 4 bytes for each 16 that objects touch. The kernel wipes it in fork children: a
 * child counts no object of its parent.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/object_map_layout.h"

struct object {
    uint32_t account;
    uint64_t bytes;
};

/** Returns the directory of tables, for threads that have counters of their own. NULL: there is no memory. */
uintptr_t *object_map_tables(void);
/**
 * In a fork child, when it begins: empties the map. Code that a forking signal handler interrupted may have entered
 * objects for the parent.
 */
void object_map_begin_anew(void);
/** Enters an object. False: there is no memory for its table. */
bool object_map_put(uintptr_t address, struct object o);
/** Makes tables for `bytes` of addresses where the kernel is likely to map memory next, before seccomp forbids it. */
void object_map_take_room(uint64_t bytes);
/*
 * The agent usually comes first. The library then reserves memory, which must not lie where the agent expects
 * objects.
 */
#define OBJECT_MAP_ROOM_TAGS  (1ull << 30)
#define OBJECT_MAP_ROOM_SITES (3ull << 30)
/**
 * Backs the part of the map for the next MiB of addresses, because a program that allocates a small object at
 * `address` is likely to allocate more above it. One or two page faults for each page of the map would cost as much
 * as hundreds of objects. Called now and then, when an object is sampled.
 */
void object_map_expect_more(uintptr_t address);
/** Is there an object at this address? */
bool object_map_has(uintptr_t address);
/** Takes an object out of the map. False: no known object begins there. */
bool object_map_take(uintptr_t address, struct object *o);
/**
 * Takes out a large object that begins in the same page as the new large object at `address`. The old object must
 * have been freed, and the new one needs the page's word for its size. False: there is none.
 */
bool object_map_take_from_page(uintptr_t address, struct object *o);
/** A directory without tables. Inline code of threads that must not write to the map reads it. */
extern uintptr_t object_map_none_words[2];
#define object_map_none (object_map_none_words + 1)

#endif
