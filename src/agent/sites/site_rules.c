/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites/site_rules.h"

#include "agent/ledger_writer.h"
#include "agent/sites/sites.h"
#include "base/sigsafe/str.h"
#include "target/rules.h"
#include "target/stack_calls.h"
#include "target/vm_reserve.h"
#include "unwind/module.h"

#define AT(table, type, index) ledger_at(&process.ledger, table, type, index)

/* By number of the site: what rules_lookup() needs of it. Each generation of fork children uses the next one of the
 * SITES_GENERATIONS arrays, because a child numbers its sites anew. The kernel wipes all arrays in a fork child. */
static struct deferred_target (*all_places)[SITES_MOST], *places;
static struct vm_array extents[SITES_GENERATIONS], *extent; /* writable part of each array; of `places` */
static struct stack_calls calls = STACK_CALLS_OF(&process.ledger);

void site_rules_begin(void)
{
    all_places = vm_reserve(SITES_GENERATIONS * sizeof(*all_places), true);
}

void site_rules_begin_ledger(void)
{
    rules_begin();
    places = all_places ? all_places[process.generation % SITES_GENERATIONS] : NULL;
    extent = &extents[process.generation % SITES_GENERATIONS];
    extent->record_bytes = sizeof(*places);
    extent->most = SITES_MOST;
    if (process.generation > 1)
        stack_calls_reset(&calls);
}

/*
 * Returns what rules_lookup() needs for the site; NULL: the ledger has no record of the site's module, or there is no
 * memory. The member `module` of the result stays 0: no file lists all sites of a module, so `allium set` makes rules
 * only for sites that have been called, and the process itself matches the deferred rules with all other sites.
 */
static struct deferred_target *place_of(uint32_t number, uint32_t module, uintptr_t pc)
{
    struct deferred_target *place = &places[number];
    const struct unwind_module *m = &unwind_modules.at[module];
    uint32_t row = load_acquire(&m->ledger_id);
    if (!row || !vm_array_reach(extent, places, number))
        return NULL;
    if (load_acquire(&place->key))
        return place;
    const struct ledger_module *of = AT(LEDGER_MODULES, struct ledger_module, row - 1);
    const char *path = AT(LEDGER_STRINGS, char, of->path);
    place->code = (const char *)pc - 1;
    store_release(&place->key, ledger_site_key(of->build_id_len ? (const void *)of->build_id : path,
                                               of->build_id_len ? of->build_id_len : text_length(path),
                                               (pc - m->bias) & LEDGER_FRAME_OFFSET_MASK));
    return place;
}

bool site_rules_want_stacks(const struct ledger_control *c, int32_t state, uint32_t number, uint32_t module,
                            uintptr_t pc)
{
    struct ledger_action a;
    bool timed;
    struct deferred_target *place = places && load_relaxed(&c->listed) ? place_of(number, module, pc) : NULL;
    return place && rules_lookup(c, state, place, &a, &timed) >> LEDGER_ACTION_STACKS & 1;
}

void sites_count_stack(struct thread *t, const struct walk_start *from, uint32_t number, size_t size)
{
    if (!stack_calls_add(&calls, LEDGER_STACK_OF_SITE | number, writer_stack(t, from), size))
        process_count_loss(LEDGER_LOST_DETAILS);
}
