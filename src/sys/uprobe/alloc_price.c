/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/uprobe/alloc_price.h"

#include <errno.h>
#include <unistd.h>

#include "bpf/memleak.h"
#include "sys/probe/probe_price.h"

#define ZERO 7u /* the number of an argument that is always 0 */

static uint64_t cookie_of(enum alloc_role role, enum probe_place_kind kind)
{
    const uint32_t what = role == ALLOC_FREES
                              ? MEMLEAK_COOKIE(MEMLEAK_NO_ARGUMENT, MEMLEAK_NO_ARGUMENT, 0)
                              : MEMLEAK_COOKIE(ZERO, MEMLEAK_NO_ARGUMENT, MEMLEAK_NO_ARGUMENT);
    return (uint64_t)ALLOC_PROCESS_OWN << 32 | what | MEMLEAK_AT(kind);
}

static int attach_multi(struct alloc_prices *prices, struct sys_session *s, enum alloc_role role,
                        enum probe_place_kind kind)
{
    struct uprobe_multi m = {.path = PROBE_PRICE_PROGRAM,
                             .pid = getpid(),
                             .kind = role == ALLOC_FREES ? UPROBE_MULTI_ENTRY : UPROBE_MULTI_SESSION};
    *vec_push(&m.offsets) = probe_price_offset(kind);
    *vec_push(&m.cookies) = cookie_of(role, kind);
    const int bad =
        uprobe_attach_multi(&prices->fds, s, role == ALLOC_FREES ? "memleak_frees" : "memleak_session", &m);
    vec_release(&m.offsets);
    vec_release(&m.cookies);
    return bad;
}

static int attach(struct alloc_prices *prices, struct sys_session *s, bool at_once, enum alloc_role role,
                  enum probe_place_kind kind)
{
    const struct uprobe_spot spot = {PROBE_PRICE_PROGRAM, getpid(), probe_price_offset(kind),
                                     cookie_of(role, kind)};
    if (at_once)
        return attach_multi(prices, s, role, kind);
    if (role == ALLOC_FREES)
        return uprobe_attach(&prices->links, s, "memleak_frees", &spot, false);
    const int bad = uprobe_attach(&prices->links, s, "memleak_returns", &spot, true);
    return bad ? bad : uprobe_attach(&prices->links, s, "memleak_enters", &spot, false);
}

/* The probe of the free is still there when a call is measured: it takes little more than the stop, which is one for
 * both. */
static int measure(struct alloc_prices *prices, struct sys_session *s, struct alloc_processes *all,
                   enum probe_place_kind kind)
{
    struct memleak_process *own = alloc_processes_own(all);
    const bool at_once = alloc_processes_at_once(all);
    int bad = attach(prices, s, at_once, ALLOC_FREES, kind);
    if (bad)
        return bad;
    prices->free_ns[kind] = probe_price_call_ns(kind);
    bad = attach(prices, s, at_once, ALLOC_RETURNS, kind);
    if (bad)
        return bad;
    own->is_flat = 0;
    prices->call_ns[kind] = probe_price_call_ns(kind);
    own->is_flat = 1;
    prices->skipped_ns[kind] = probe_price_call_ns(kind);
    return 0;
}

int alloc_prices_measure(struct alloc_prices *prices, struct sys_session *s, struct alloc_processes *all)
{
    struct memleak_process *own = alloc_processes_own(all);
    size_t n;
    bool wants[PROBE_PLACE_KINDS] = {false};
    int bad = 0;
    const struct alloc_process *p = alloc_processes_all(all, &n);
    for (size_t i = 0; i < n; i++)
        vec_each (const struct alloc_file *, file, &p[i].files)
            vec_each (const struct alloc_place, place, &(*file)->places)
                if (place->function->role != ALLOC_LOADS)
                    wants[place->place.kind] = true;
    own->counts = MEMLEAK_PRICED;
    for (int kind = 0; kind < PROBE_PLACE_KINDS && !bad; kind++)
        bad = wants[kind] ? measure(prices, s, all, (enum probe_place_kind)kind) : 0;
    own->counts = 0;
    return bad;
}

void alloc_prices_release(struct alloc_prices *prices)
{
    uprobe_detach(&prices->links, &prices->fds);
}
