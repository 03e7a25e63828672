/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_KMEM_OBJECTS_H
#define MODEL_KMEM_OBJECTS_H

/*
 * The live objects of kmem_accounts.h, by address (base/address_table.h).
 *
 * Runs in: the tool. Threads: one at a time. Owns: the slots, until kmem_objects_release().
 */

#include <stddef.h>
#include <stdint.h>

#include "base/address_table.h"

/** The largest value of born_us: 8 years in microseconds. */
#define KMEM_OBJECT_BORN_MAX ((UINT64_C(1) << 48) - 1)

/** There may be millions: 32 bytes each. A slot with the address 0 is empty. */
struct kmem_object {
    uint64_t address;
    uint64_t born_us : 48; /* since the first event */
    uint64_t cpu : 15;     /* that allocated it */
    uint64_t settled : 1;  /* see kmem_accounts_end_at() */
    uint32_t requested_bytes, allocated_bytes;
    uint32_t row, process_row;
};

struct kmem_objects {
    struct address_table table;
};

void kmem_objects_init(struct kmem_objects *o);
void kmem_objects_release(struct kmem_objects *o);
/** Returns the object at the address, or the empty slot where it belongs; valid until the next change. */
struct kmem_object *kmem_objects_find(const struct kmem_objects *o, uint64_t address);
/** Adds an object whose address is not there yet. */
void kmem_objects_add(struct kmem_objects *o, const struct kmem_object *object);
/** Adds it, or replaces the one at its address; does nothing if that would be more than `max`. */
void kmem_objects_put(struct kmem_objects *o, const struct kmem_object *object, size_t max);
typedef void kmem_object_fn(void *arg, const struct kmem_object *o);
/** Calls the function for each object, in no order; there may be no slots. */
void kmem_objects_each(const struct kmem_objects *o, kmem_object_fn *f, void *arg);
void kmem_objects_remove(struct kmem_objects *o, struct kmem_object *slot);

#endif
