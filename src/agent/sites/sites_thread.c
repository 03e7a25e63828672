/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the map of objects that belongs to a thread or to a fork child. */
#include "agent/sites/sites.h"
#include "target/vm_reserve.h"

const bool sites_linked = true;

__thread struct thread thread_self __attribute__((tls_model("initial-exec"))) = {.objects = object_map_none};

void sites_begin_thread(struct thread *t)
{
    t->objects = object_map_none;
    t->counts = false;
}

void sites_become_child(void)
{
    object_map_begin_anew();
}

void sites_seal(bool first)
{
    if (first && sites_on)
        object_map_take_room(OBJECT_MAP_ROOM_SITES);
    vm_reserve_seal(1);
}

void sites_unseal(void)
{
    vm_reserve_seal(-1);
}

void sites_expect_more(const void *p, size_t size)
{
    if (size <= OBJECTS_BYTES_INLINE)
        object_map_expect_more((uintptr_t)p);
}
