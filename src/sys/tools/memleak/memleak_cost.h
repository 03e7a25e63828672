/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_MEMLEAK_COST_H
#define SYS_MEMLEAK_COST_H

/*
 * What the probes of `allium sys memleak` cost the processes: said before and at each report, and limited (--max-cost).
 *
 * Runs in: the tool, as root. Threads: one.
 */

#include "base/buf.h"
#include "sys/uprobe/alloc_price.h"

struct memleak_hits {
    uint64_t calls[PROBE_PLACE_KINDS], frees[PROBE_PLACE_KINDS], returns;
};

struct memleak_cost {
    struct alloc_prices prices;
    struct memleak_hits told; /* at the last report */
    uint64_t told_ns;
    /* For the limit: at the last look, and since when the cost has been above it. 0: it is not */
    struct memleak_hits looked;
    uint64_t looked_ns, looked_cpu_ns, above_ns;
    double limit_percent; /* of the processes' CPU time; 0: none */
};

/** Measures the prices, and sets the counters of all CPUs to their beginning. Returns 0, or -errno with a line. */
int memleak_cost_begin(struct memleak_cost *c, struct sys_session *s, struct alloc_processes *all,
                       uint64_t period, struct error *e);
void memleak_cost_release(struct memleak_cost *c);
/** Appends a line: probes and prices. */
void memleak_cost_say_before(const struct memleak_cost *c, const struct alloc_processes *all, struct buf *b);
/** Appends a line: hits since the last one, and their cost. */
void memleak_cost_say(struct memleak_cost *c, struct sys_session *s, struct buf *b);
/** To be called once a second. Returns true with a line when the limit was exceeded for five seconds. */
bool memleak_cost_exceeds(struct memleak_cost *c, struct sys_session *s, const struct alloc_processes *all,
                          struct buf *b);

#endif
