/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/probe/probe_price.h"

#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "bpf/probe.h"
#include "sys/bpf_object.h"
#include "sys/probe/probe_attach.h"

#define CALLS  100u /* of a round */
#define ROUNDS 8u   /* of which the fastest one counts: others run on this machine, too */

/* Functions with a probe on their first instruction, one for each kind of place. */
#define FUNCTION(name, code)                                                                                 \
    __asm__(".text\n\t.balign 64\n\t.globl probe_price_" #name "\n\t.type probe_price_" #name                \
            ", @function\n"                                                                                  \
            "probe_price_" #name ":\n\t" code "\n\tret\n\t.size probe_price_" #name                          \
            ", . - probe_price_" #name "\n");                                                                \
    void probe_price_##name(void) __attribute__((visibility("hidden")))
FUNCTION(nop, "nop");
FUNCTION(push, "push %rbp\n\tpop %rbp");
FUNCTION(step, "test %eax, %eax");

static void (*const functions[PROBE_PLACE_KINDS])(void) = {
    [PROBE_PLACE_NOP] = probe_price_nop,
    [PROBE_PLACE_EMULATED] = probe_price_push,
    [PROBE_PLACE_STEPPED] = probe_price_step,
};

struct place {
    uintptr_t address;
    uint64_t offset;
};

/* The first object is the program. */
static int find_offset(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    struct place *p = arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        const uintptr_t low = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type == PT_LOAD && p->address >= low && p->address - low < ph->p_filesz)
            p->offset = p->address - low + ph->p_offset;
    }
    return 1;
}

static uint64_t call_ns(void (*function)(void))
{
    uint64_t best = UINT64_MAX;
    for (unsigned round = 0; round < ROUNDS; round++) {
        const int64_t began = clock_ns(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < CALLS; i++)
            function();
        const uint64_t took = (uint64_t)(clock_ns(CLOCK_MONOTONIC) - began) / CALLS;
        best = took < best ? took : best;
    }
    return best;
}

uint64_t probe_price_offset(enum probe_place_kind kind)
{
    struct place place = {(uintptr_t)functions[kind], 0};
    dl_iterate_phdr(find_offset, &place);
    return place.offset;
}

uint64_t probe_price_call_ns(enum probe_place_kind kind)
{
    return call_ns(functions[kind]);
}

/* The price of a call of one kind, with an event at the return or without. */
static int measure(struct sys_session *s, enum probe_place_kind kind, bool returns, uint64_t *ns)
{
    const uint64_t offset = probe_price_offset(kind);
    struct bpf_link *links[2] = {NULL, NULL};
    if (returns)
        links[0] = probe_attach_one(s, "probe_returns", PROBE_PRICE_PROGRAM, offset, 0, PROBE_EVENT_ID + 1);
    if (!returns || links[0])
        links[1] = probe_attach_one(s, "probe_enters", PROBE_PRICE_PROGRAM, offset, 0, PROBE_EVENT_ID);
    const int bad = links[1] ? 0 : -errno;
    if (!bad)
        *ns = call_ns(functions[kind]);
    bpf_link__destroy(links[1]);
    bpf_link__destroy(links[0]);
    return bad;
}

int probe_prices_measure(struct sys_session *s, const struct probe_list *probes, struct probe_prices *out,
                         struct error *e)
{
    size_t n;
    bool wants[PROBE_PLACE_KINDS] = {false}, returns = false;
    uint64_t with_return = 0;
    int bad = 0;
    uint32_t *prices = bpf_object_shared(s, "prices");
    const struct probe *all = probe_list_all(probes, &n);
    *out = (struct probe_prices){.return_ns = 0};
    for (size_t i = 0; i < n; i++) {
        returns = returns || !all[i].is_static;
        vec_each (const struct probe_site, site, &all[i].sites)
            wants[site->place.kind] = true;
    }
    wants[PROBE_PLACE_EMULATED] = wants[PROBE_PLACE_EMULATED] || returns;
    if (!prices)
        return error_set(e, EIO, "its BPF programs are damaged in this allium: install it again");
    __atomic_store_n(prices, 1, __ATOMIC_SEQ_CST);
    for (int kind = 0; kind < PROBE_PLACE_KINDS && !bad; kind++)
        if (wants[kind])
            bad = measure(s, (enum probe_place_kind)kind, false, &out->entry_ns[kind]);
    if (!bad && returns)
        bad = measure(s, PROBE_PLACE_EMULATED, true, &with_return);
    __atomic_store_n(prices, 0, __ATOMIC_SEQ_CST);
    if (bad)
        return error_set(e, -bad, "--function: cannot measure what a probe costs: %s", strerror(-bad));
    const uint64_t entry = out->entry_ns[PROBE_PLACE_EMULATED];
    out->return_ns = with_return > entry ? with_return - entry : 0;
    return 0;
}

static void add_us(struct buf *b, uint64_t ns)
{
    buf_printf(b, "%" PRIu64 ".%" PRIu64 " us", (ns + 50) / 1000, (ns + 50) % 1000 / 100);
}

void probe_prices_print(const struct probe_prices *prices, const struct probe_list *probes, struct buf *b)
{
    size_t n;
    const struct probe *all = probe_list_all(probes, &n);
    for (const struct probe *p = all; p < all + n; p++) {
        const struct probe_site *site = p->sites.at;
        buf_printf(b, "%s%s", p > all ? "; " : "probes: ", p->name);
        if (p->sites.len > 1)
            buf_printf(b, " at %zu places", p->sites.len);
        else if (!p->is_static)
            buf_printf(b, " entry at +%" PRIu64, site->place.after);
        buf_printf(b, " (%s, ", site->place.instruction);
        add_us(b, prices->entry_ns[site->place.kind]);
        buf_addstr(b, " a call)");
        if (!p->is_static) {
            buf_addstr(b, ", return ");
            add_us(b, prices->return_ns);
        }
    }
}
