/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork children of signal handlers that interrupted a hot function of sites.h. After the handler, the hot
 * function goes on and adds to sums of the parent, which are not mapped in the child. So other memory is
 * mapped at their addresses.
 */
#include "agent/sites/sites.h"
#include "target/fork_placeholder.h"

/* The memory is no larger than it must be: mlockall(2) in the child takes it for memory of the program. */
void sites_before_fork(void)
{
    bool counts = sites_on && process_has_ledger();
    fork_placeholder_note(PART_SITE_SUMS, process.ledger.regions[LEDGER_SITE_SUMS],
                          counts ? load_acquire(&process.ledger.header->regions[LEDGER_SITE_SUMS].ready_bytes)
                                 : 0);
}
