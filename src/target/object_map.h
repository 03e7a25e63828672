/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_OBJECT_MAP_H
#define TARGET_OBJECT_MAP_H

/*
 * The map of objects has the account and the size of each live object that is counted. For each multiple of 16 in the
 * address space there is an entry of 4 bytes, which describes the object that begins at this address. Addresses that
 * are odd multiples of 8, which few allocators return, have other entries at a fixed distance. A size above
 * OBJECTS_BYTES_INLINE bytes does not fit into the entry. Such a size is in a word that the map has for each page of
 * addresses. One word for a page is enough, because no two objects of such a size begin in the same page.
 *
 * A table holds the entries of 4 MiB of addresses. Address space for tables is reserved in chunks. A table is made
 * writable before the first object in its 4 MiB is entered; until then the kernel does not count the table as data of
 * the program (VmData).
 *
 * Runs in: target. Threads: any. Only the thread that allocates or frees an object writes to its entry.
 * Owns: private anonymous memory: pages of the map, of 1024 entries each, in which objects were entered. The kernel
 * wipes this memory in fork children: a child counts no object of its parent.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/object_map_layout.h"

struct object {
    uint32_t account;
    uint64_t bytes;
};

/**
 * Returns the directory of tables; makes it if there is none. The inline code of threads with a shard of their own
 * reads the directory. NULL: there is no memory.
 */
uintptr_t *object_map_tables(void);
/**
 * Called in a fork child by process_update(): empties the map. The kernel has wiped the map at the fork, but code that
 * a forking signal handler interrupted may have entered objects since.
 */
void object_map_begin_anew(void);
/** Adds an object to the map. False: there is no memory for its table, or `address` is not below 2^47. */
bool object_map_put(uintptr_t address, struct object o);
/**
 * Makes tables for the `bytes` bytes of addresses where the kernel is likely to map memory next. To be called before
 * the process enters seccomp, because afterwards no table can be made.
 */
void object_map_take_room(uint64_t bytes);
/*
 * Arguments of object_map_take_room(). The agent usually calls it before the tag library does. The library then
 * reserves memory in the addresses that the agent has made tables for, so the agent makes tables for more addresses.
 */
#define OBJECT_MAP_ROOM_TAGS  (1ull << 30)
#define OBJECT_MAP_ROOM_SITES (3ull << 30)
/**
 * Populates the part of the map for the next MiB of addresses (at most to the end of the table), because a program that
 * has allocated a small object at `address` is likely to allocate more above it. For each page of the map, this saves
 * one or two page faults, which cost as much as counting hundreds of objects. Called only for objects that are sampled.
 */
void object_map_expect_more(uintptr_t address);
/** Returns whether the map has an object that begins at this address. */
bool object_map_has(uintptr_t address);
/** Removes the object at `address` from the map; *o gets account and size. False: no known object begins there. */
bool object_map_take(uintptr_t address, struct object *o);
/**
 * Removes an earlier large object that began in the page in which the new large object at `address` begins; *o gets its
 * account and size. If the map still has such an object, it was freed by a call that the library did not see. The new
 * object needs the word of the page for its size. False: the map has no such object.
 */
bool object_map_take_from_page(uintptr_t address, struct object *o);
/** A directory without tables, for the inline code of threads that must not write to the map. */
extern uintptr_t object_map_none_words[2];
#define object_map_none (object_map_none_words + 1)

/** The same for objects_table_of(). */
extern const char object_map_none_view[2 * (OBJECTS_SHIFT_MASK + 1)];
#define OBJECT_MAP_NONE_VIEW (object_map_none_view + OBJECTS_SHIFT_NONE)
/** Returns the directory as objects_table_of() takes it. */
static inline const char *object_map_view(const uintptr_t *directory)
{
    return (const char *)directory + OBJECTS_SHIFT;
}

#endif
