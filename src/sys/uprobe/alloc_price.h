/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ALLOC_PRICE_H
#define SYS_ALLOC_PRICE_H

/*
 * What the probes of `allium sys memleak` cost on this machine: measured by calls of functions of allium itself, with
 * the same programs.
 *
 * Runs in: the tool, as root. Threads: one.
 */

#include "base/error.h"
#include "symbol/probe/probe_place.h"
#include "sys/uprobe/alloc_processes.h"

struct alloc_prices {
    /* of a call, its return included; of one whose return is of no interest; of a free. By kind of place */
    uint64_t call_ns[PROBE_PLACE_KINDS], skipped_ns[PROBE_PLACE_KINDS], free_ns[PROBE_PLACE_KINDS];
    /* They stay: nobody calls these functions, and the kernel takes long to remove probes. */
    struct uprobe_links links;
    struct uprobe_fds fds;
};

/** Measures the kinds of places that the processes have. Returns 0 or -errno. Release it in any case. */
int alloc_prices_measure(struct alloc_prices *prices, struct sys_session *s, struct alloc_processes *all);
void alloc_prices_release(struct alloc_prices *prices);

#endif
