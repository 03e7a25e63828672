/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/kmem_objects.h"

#include <stdlib.h>

#include "base/mem.h"

#define SLOTS_FIRST 4096u

void kmem_objects_init(struct kmem_objects *o)
{
    *o = (struct kmem_objects){.slots = mem_array(SLOTS_FIRST, sizeof(*o->slots)), .mask = SLOTS_FIRST - 1};
}

void kmem_objects_release(struct kmem_objects *o)
{
    free(o->slots);
    *o = (struct kmem_objects){.slots = NULL};
}

static size_t home_of(const struct kmem_objects *o, uint64_t address)
{
    return (size_t)((address * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & o->mask;
}

struct kmem_object *kmem_objects_find(const struct kmem_objects *o, uint64_t address)
{
    size_t at = home_of(o, address);
    while (o->slots[at].address && o->slots[at].address != address)
        at = (at + 1) & o->mask;
    return &o->slots[at];
}

static void grow(struct kmem_objects *o)
{
    struct kmem_objects old = *o;
    o->mask = 2 * old.mask + 1;
    o->slots = mem_array(o->mask + 1, sizeof(*o->slots));
    for (size_t i = 0; i <= old.mask; i++)
        if (old.slots[i].address)
            *kmem_objects_find(o, old.slots[i].address) = old.slots[i];
    free(old.slots);
}

void kmem_objects_add(struct kmem_objects *o, const struct kmem_object *object)
{
    if (2 * (o->n + 1) > o->mask)
        grow(o);
    *kmem_objects_find(o, object->address) = *object;
    o->n++;
}

void kmem_objects_put(struct kmem_objects *o, const struct kmem_object *object, size_t max)
{
    struct kmem_object *slot = kmem_objects_find(o, object->address);
    if (slot->address)
        *slot = *object;
    else if (o->n < max)
        kmem_objects_add(o, object);
}

void kmem_objects_remove(struct kmem_objects *o, struct kmem_object *slot)
{
    size_t hole = (size_t)(slot - o->slots);
    for (size_t at = hole;;) {
        at = (at + 1) & o->mask;
        if (!o->slots[at].address)
            break;
        size_t home = home_of(o, o->slots[at].address);
        if (((at - home) & o->mask) < ((at - hole) & o->mask)) /* its home is behind the hole */
            continue;
        o->slots[hole] = o->slots[at];
        hole = at;
    }
    o->slots[hole].address = 0;
    o->n--;
}

void kmem_objects_each(const struct kmem_objects *o, kmem_object_fn *f, void *arg)
{
    for (size_t i = 0; o->slots && i <= o->mask; i++)
        if (o->slots[i].address)
            f(arg, &o->slots[i]);
}
