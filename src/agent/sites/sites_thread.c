/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that the rest of the agent calls for sites, and the state of each thread and fork child. */
#include "agent/sites/sites.h"
#include "agent/sites/sites_operators.h"
#include "agent/sites/sites_unload.h"
#include "agent/tracer/tracer.h"
#include "agent/sites/attached.h"
#include "agent/tracer/tracer_life.h"
#include "agent/tracer/tracer_sum.h"
#include "target/vm_reserve.h"

static void begin(void)
{
    if (process.config.sites & LEDGER_WITH_SITES)
        sites_begin();
    if (process.config.sites & (LEDGER_WITH_TRACE | LEDGER_WITH_TRACE_LATER)) {
        tracer_begin();
        sites_operators_trace();
    }
}

static void begin_ledger(void)
{
    if (process.config.sites & LEDGER_WITH_SITES)
        sites_begin_ledger();
    if (process.config.sites & (LEDGER_WITH_TRACE | LEDGER_WITH_TRACE_LATER))
        tracer_begin_ledger();
}

static void allocated(const struct walk_start *from, void *p, size_t size)
{
    if (sites_counting)
        sites_allocated_cold(from, p, size);
    if (tracer_on)
        tracer_allocated(from, p, size);
}

static void released(const struct walk_start *from, void *p)
{
    if (tracer_on)
        tracer_released(from, p);
    if (sites_counting)
        sites_released_cold(from, p);
}

static struct sites_taken take(const struct walk_start *from, void *p)
{
    if (tracer_on)
        tracer_realloc_begins(from, p);
    return sites_counting ? sites_take(p) : (struct sites_taken){.generation = 0};
}

static void moved(const struct walk_start *from, void *old, struct sites_taken taken, void *p, size_t size,
                  bool failed)
{
    if (sites_counting)
        sites_moved(from, old, taken, p, size, failed);
    if (tracer_on)
        tracer_realloc_ends(from, p, size);
}

static void begin_thread(struct thread *t)
{
    sites_begin_thread(t);
    tracer_begin_thread();
}

static void find_next(void)
{
    sites_find_next();
    tracer_find_next();
}

static void before_fork(void)
{
    sites_before_fork();
    tracer_before_fork();
}

static const struct sites functions = {.find_next = find_next,
                                       .begin = begin,
                                       .begin_ledger = begin_ledger,
                                       .begin_thread = begin_thread,
                                       .before_fork = before_fork,
                                       .become_child = sites_become_child,
                                       .read_settings = attached_read_settings,
                                       .seal = sites_seal,
                                       .unseal = sites_unseal,
                                       .allocated = allocated,
                                       .released = released,
                                       .expect_more = sites_expect_more,
                                       .take = take,
                                       .moved = moved,
                                       .charge_tag = sites_charge_tag,
                                       .notices_unload = sites_unload_is_noticed,
                                       .executes = tracer_life_executes,
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
    if (process.config.sites & LEDGER_WITH_SITES)
        object_map_begin_anew();
}

void sites_seal(bool first)
{
    if (first && sites_counting)
        object_map_take_room(OBJECT_MAP_ROOM_SITES);
    if (first)
        tracer_sum_seal();
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
