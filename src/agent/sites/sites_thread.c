/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that the rest of the agent calls for sites, and the state of each thread and fork child. */
#include "agent/sites/sites.h"
#include "target/vm_reserve.h"

static const struct sites functions = {.find_next = sites_find_next,
                                       .begin = sites_begin,
                                       .begin_ledger = sites_begin_ledger,
                                       .begin_thread = sites_begin_thread,
                                       .before_fork = sites_before_fork,
                                       .become_child = sites_become_child,
                                       .seal = sites_seal,
                                       .unseal = sites_unseal,
                                       .allocated = sites_allocated_cold,
                                       .released = sites_released_cold,
                                       .expect_more = sites_expect_more,
                                       .take = sites_take,
                                       .moved = sites_moved,
                                       .charge_tag = sites_charge_tag,
#define X(field, symbol) .instead_##field = sites_instead_##field,
                                       NEXT_NEW_FORMS(X) NEXT_DELETE_FORMS(X)
#undef X
};

const struct sites *const sites = &functions;

__thread struct thread thread_self
    __attribute__((tls_model("initial-exec"))) = {.objects = OBJECT_MAP_NONE_VIEW};

void sites_begin_thread(struct thread *t)
{
    t->objects = OBJECT_MAP_NONE_VIEW;
    t->counts = false;
}

void sites_become_child(void)
{
    vm_reserve_obey(NULL);
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
