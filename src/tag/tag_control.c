/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/tag_control.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/draw.h"
#include "base/sigsafe/syscall.h"
#include "tag/events.h"
#include "tag/tag_index.h"
#include "target/rules.h"
#include "target/vm_reserve.h"

#define PAGES_MAX    256u /* at most this many modules with tags */
#define SERIAL_SHIFT 48
/* A thread looks up a rule, and uses it later. Assumed: meanwhile, the rule is replaced fewer times than this. */
#define SERIALS_LATE 1024

_Static_assert(offsetof(struct ledger_control, state) == 16, "allium_control in <allium/tag.h> lies there");

/* The modules over whose allium_control_page the library has mapped the control page. */
static struct {
    const char *page; /* written last */
    const struct link_map *map;
} pages[PAGES_MAX];
static uint32_t n_pages;

static const struct ledger_control *own; /* the control page of this process; NULL: there is none */

uint32_t tag_control_lookup(struct allium_tag *tag, struct deferred_target *place, struct ledger_action *a)
{
    int32_t state = load_acquire(&tag_control_page(tag)->state), known = load_relaxed(&tag->state);
    if (known >= state)
        return known > state ? TAG_CONTROL_COUNTED : 0;
    const struct ledger_control *c = load_acquire(&own);
    bool more = false, off = c && load_relaxed(&c->word) & LEDGER_CONTROL_TAGS_OFF;
    uint32_t actions = c ? rules_lookup(c, state, place, a, &more) : 0;
    bool counted = !tag_control_requests(actions, LEDGER_ACTION_OFF) &&
                   (!off || tag_control_requests(actions, LEDGER_ACTION_ON));
    if (!counted)
        actions &= ~(1u << LEDGER_ACTION_FAIL); /* a tag that is off cannot count an injected failure */
    if (counted && events_has_tags)
        actions |= TAG_CONTROL_TRACED;
    more |= actions >> LEDGER_ACTION_STACKS != 0;
    /* The sum may overflow, because any process of the user may write any `state` to the page. */
    store_release(&tag->state, (int32_t)((uint32_t)state + (more ? -1u : counted ? 1u : 0u)));
    return actions | (counted ? TAG_CONTROL_COUNTED : 0);
}

void tag_control_turn_off(struct allium_tag *tag)
{
    if (tag->control)
        store_release(&tag->state, load_acquire(&tag_control_page(tag)->state));
}

bool tag_control_is_between(const struct allium_tag *tag, const char *start, const char *end)
{
    const char *page = (const char *)tag_control_page(tag);
    return (uintptr_t)page % LEDGER_PAGE_BYTES == 0 && page >= start && page < end;
}

bool tag_control_fails(const struct ledger_action *a, uint64_t *calls)
{
    uint64_t before = load_relaxed(calls), now;
    do {
        const uint16_t newer_by = (uint16_t)((before >> SERIAL_SHIFT) - a->serial);
        if (before && newer_by && newer_by < SERIALS_LATE)
            return false; /* the rule was replaced since the lookup, and another thread has the new one */
        now = newer_by ? (uint64_t)a->serial << SERIAL_SHIFT | 1 : before + 1;
    } while (!__atomic_compare_exchange_n(calls, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    uint64_t call = now & ((1ull << SERIAL_SHIFT) - 1), draw = a->key ^ now;
    if (a->fail == LEDGER_FAIL_NTH)
        return call == a->n;
    if (a->fail == LEDGER_FAIL_EVERY)
        return a->n && call % a->n == 0;
    return a->fail == LEDGER_FAIL_CHANCE && draw_next(&draw) % 1000000 < a->n;
}

/* Maps the control page `of` also at `page`, in one step. mremap() with an old size of 0 duplicates a shared mapping.
 * It needs no file descriptor, and no path, which may no longer exist. */
static void show_at(const struct ledger_control *of, const char *page)
{
    if (vm_reserve_may_call())
        sys_call(SYS_mremap, of, 0, LEDGER_PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, page);
}

static bool is_shown_at(const char *page)
{
    return ((const struct ledger_control *)page)
        ->state; /* the magic is not there before the tool has written */
}

void tag_control_show(const struct ledger_control *of, const struct allium_tag *tag)
{
    tag_control_show_page(of, (const char *)tag_control_page(tag));
}

void tag_control_show_page(const struct ledger_control *of, const char *page)
{
    struct dl_find_object found;
    if (!of || (uintptr_t)page % LEDGER_PAGE_BYTES || _dl_find_object((void *)(uintptr_t)page, &found) ||
        is_shown_at(page))
        return;
    uint32_t n = 0;
    while (n < PAGES_MAX && n < load_acquire(&n_pages) && load_relaxed(&pages[n].page) != page)
        n++; /* a module loaded at the address of an unloaded one takes over the entry of that one */
    if (n < PAGES_MAX && n == load_acquire(&n_pages))
        n = __atomic_fetch_add(&n_pages, 1, __ATOMIC_RELAXED);
    if (n >= PAGES_MAX)
        return; /* not mapped, because a fork child maps its own control page only at the pages in this list */
    pages[n].map = found.dlfo_link_map;
    store_release(&pages[n].page, page);
    show_at(of, page);
}

void tag_control_show_again(const struct ledger_control *of)
{
    struct dl_find_object found;
    rules_begin();
    store_release(&own, of);
    for (uint32_t i = 0; of && i < PAGES_MAX && i < load_acquire(&n_pages); i++) {
        const char *page = load_acquire(&pages[i].page);
        if (page && tag_index_module(page, &found) && found.dlfo_link_map == pages[i].map &&
            is_shown_at(page))
            show_at(of, page);
    }
}
