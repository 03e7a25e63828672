/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/kmem_objects.h"

#define BYTES sizeof(struct kmem_object)

void kmem_objects_init(struct kmem_objects *o)
{
    address_table_init(&o->table, BYTES);
}

void kmem_objects_release(struct kmem_objects *o)
{
    address_table_release(&o->table);
}

struct kmem_object *kmem_objects_find(const struct kmem_objects *o, uint64_t address)
{
    return address_table_find(&o->table, BYTES, address);
}

void kmem_objects_add(struct kmem_objects *o, const struct kmem_object *object)
{
    address_table_add(&o->table, BYTES, object);
}

void kmem_objects_put(struct kmem_objects *o, const struct kmem_object *object, size_t max)
{
    struct kmem_object *slot = kmem_objects_find(o, object->address);
    if (slot->address)
        *slot = *object;
    else if (o->table.n < max)
        kmem_objects_add(o, object);
}

void kmem_objects_remove(struct kmem_objects *o, struct kmem_object *slot)
{
    address_table_remove(&o->table, BYTES, slot);
}

void kmem_objects_each(const struct kmem_objects *o, kmem_object_fn *f, void *arg)
{
    for (size_t i = 0; o->table.slots && i <= o->table.mask; i++) {
        const struct kmem_object *slot = (const struct kmem_object *)address_table_slot(&o->table, BYTES, i);
        if (slot->address)
            f(arg, slot);
    }
}
