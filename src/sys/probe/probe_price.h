/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PROBE_PRICE_H
#define SYS_PROBE_PRICE_H

/*
 * What a probe costs on this machine: measured by calls of functions of allium itself, with the programs and rings that
 * a trace uses. The events are thrown away afterwards.
 *
 * Runs in: the tool, as root. Threads: one.
 */

#include "base/buf.h"
#include "sys/probe/probe_list.h"
#include "sys/session.h"

struct probe_prices {
    uint64_t entry_ns[PROBE_PLACE_KINDS]; /* by kind of place; 0: no probe is on such a place */
    uint64_t return_ns;                   /* more, of a function whose return has an event, too */
};

/** Measures what the list needs. The rings must be ready. Returns 0, or -errno with a line. */
int probe_prices_measure(struct sys_session *s, const struct probe_list *probes, struct probe_prices *out,
                         struct error *e);
/** The file in which allium's own functions are that are called for it. */
#define PROBE_PRICE_PROGRAM "/proc/self/exe"
/** Returns where in it a function is whose first instruction is of that kind. */
uint64_t probe_price_offset(enum probe_place_kind kind);
/** Returns how long a call of that function takes. */
uint64_t probe_price_call_ns(enum probe_place_kind kind);

/** Appends one line: the place of each probe and its price. */
void probe_prices_print(const struct probe_prices *prices, const struct probe_list *probes, struct buf *b);

#endif
