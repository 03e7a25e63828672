/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/rules.h"

#include <sys/mman.h>
#include <time.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/syscall.h"
#include "target/vm_reserve.h"
#include "wire/deferred_rules.h"

/* How many bytes of each list can be read: of the two copies of the rules, and of the two of the deferred rules. */
static uint64_t readable[4];

/* Makes a part of a list readable. All of it would be backed by mlockall(2) in the program. */
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

static unsigned side(uint32_t listed)
{
    return listed & LEDGER_ACTIONS_SECOND ? 1 : 0;
}

/* Returns the list that is in force; NULL: there is none. */
static const struct ledger_action *list_of(const struct ledger_control *c, uint32_t *count)
{
    uint32_t listed = load_acquire(&c->listed);
    const void *list = (const char *)c + ledger_list_offset(listed);
    *count = ledger_listed_actions(listed);
    if (!*count || *count > LEDGER_ACTIONS_MOST ||
        !can_read(list, side(listed), *count * sizeof(struct ledger_action)))
        return NULL;
    return list;
}

/* Returns the deferred rules beside that list; NULL: there are none. */
static const struct ledger_deferred *kept_of(const struct ledger_control *c, uint32_t *queries)
{
    uint32_t listed = load_acquire(&c->listed);
    const void *kept = (const char *)c + ledger_deferred_offset(listed);
    *queries = ledger_listed_queries(listed);
    if (!*queries || *queries > LEDGER_QUERIES_MOST ||
        !can_read(kept, 2 + side(listed), LEDGER_DEFERRED_BYTES(*queries)))
        return NULL;
    return kept;
}

/* Returns what the rule asks now. Sets *timed if it may ask something else later. */
static uint32_t asked_now(const struct ledger_action *a, bool *timed)
{
    uint32_t asked = a->actions;
    for (unsigned ask = 0; ask < LEDGER_ACTION_KINDS; ask++)
        if (asked >> ask & 1 && a->until_ns[ask]) {
            if (clock_ns(CLOCK_MONOTONIC) >= a->until_ns[ask])
                asked &= ~(1u << ask);
            else
                *timed = true;
        }
    return asked;
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

/* Finds the deferred rules that apply to a place, where the lists have no rule for it. */
static bool find_kept(const struct ledger_control *c, int32_t state, struct deferred_target *place,
                      struct ledger_action *a)
{
    uint32_t count;
    const struct ledger_deferred *k = kept_of(c, &count);
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
    return find(c, place->key, a) || find_kept(c, state, place, a) ? asked_now(a, timed) : 0;
}

void rules_begin(void)
{
    __builtin_memset(readable, 0, sizeof(readable));
}
