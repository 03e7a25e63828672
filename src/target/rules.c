/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/rules.h"

#include <sys/mman.h>
#include <time.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/syscall.h"
#include "target/vm_reserve.h"
#include "wire/deferred_rules.h"

/* The readable bytes of each list: of the two lists of actions, then of the two copies of the deferred rules. */
static uint64_t readable[4];

/* Makes the first `bytes` of a list readable. Not all of it: mlockall(2) in the program would back readable pages. */
static bool can_read(const void *list, unsigned which, uint64_t bytes)
{
    bytes = (bytes + LEDGER_PAGE_BYTES - 1) & -(uint64_t)LEDGER_PAGE_BYTES;
    if (bytes <= load_acquire(&readable[which]))
        return true;
    if (!vm_reserve_may_call() || sys_call(SYS_mprotect, list, bytes, PROT_READ))
        return false;
    store_release(&readable[which], bytes);
    return true;
}

static unsigned copy_number(uint32_t listed)
{
    return listed & LEDGER_ACTIONS_SECOND ? 1 : 0;
}

/* Returns the list of actions that is in force, and *count; NULL: there is none, or it cannot be read. */
static const struct ledger_action *list_of(const struct ledger_control *c, uint32_t *count)
{
    uint32_t listed = load_acquire(&c->listed);
    const void *list = (const char *)c + ledger_list_offset(listed);
    *count = ledger_listed_actions(listed);
    if (!*count || *count > LEDGER_ACTIONS_MOST ||
        !can_read(list, copy_number(listed), *count * sizeof(struct ledger_action)))
        return NULL;
    return list;
}

/* Returns the copy of the deferred rules that is in force; NULL: there is none, or it cannot be read. */
static const struct ledger_deferred *deferred_of(const struct ledger_control *c, uint32_t *queries)
{
    uint32_t listed = load_acquire(&c->listed);
    const void *deferred = (const char *)c + ledger_deferred_offset(listed);
    *queries = ledger_listed_queries(listed);
    if (!*queries || *queries > LEDGER_QUERIES_MOST ||
        !can_read(deferred, 2 + copy_number(listed), LEDGER_DEFERRED_BYTES(*queries)))
        return NULL;
    return deferred;
}

/* Returns the actions that the rule requests now. Sets *timed to true if one of these actions has an end time. */
static uint32_t actions_now(const struct ledger_action *a, bool *timed)
{
    uint32_t actions = a->actions;
    for (unsigned kind = 0; kind < LEDGER_ACTION_KINDS; kind++)
        if (actions >> kind & 1 && a->until_ns[kind]) {
            if (clock_ns(CLOCK_MONOTONIC) >= a->until_ns[kind])
                actions &= ~(1u << kind);
            else
                *timed = true;
        }
    return actions;
}

static bool find(const struct ledger_control *c, uint64_t key, struct ledger_action *a)
{
    uint32_t low = 0, high;
    const struct ledger_action *list = list_of(c, &high);
    while (list && low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (list[mid].key < key)
            low = mid + 1;
        else if (list[mid].key > key)
            high = mid;
        else {
            *a = list[mid];
            return true;
        }
    }
    return false;
}

/* Combines all deferred rules that apply to the place into *a. Called only if the list of actions has no entry for the
 * place. False: no action is requested. */
static bool find_deferred(const struct ledger_control *c, int32_t state, struct deferred_target *place,
                          struct ledger_action *a)
{
    uint32_t count;
    const struct ledger_deferred *k = deferred_of(c, &count);
    uint32_t fits = k ? deferred_fits(k, count, (uint32_t)state, place) : 0;
    *a = (struct ledger_action){.key = place->key};
    for (uint32_t i = 0; i < count && fits >> i; i++)
        if (fits >> i & 1)
            ledger_action_change(a, &k->queries[i]);
    return a->actions;
}

uint32_t rules_lookup(const struct ledger_control *c, int32_t state, struct deferred_target *place,
                      struct ledger_action *a, bool *timed)
{
    return find(c, place->key, a) || find_deferred(c, state, place, a) ? actions_now(a, timed) : 0;
}

void rules_begin(void)
{
    __builtin_memset(readable, 0, sizeof(readable));
}
