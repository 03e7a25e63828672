/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * If a signal handler interrupts a hot function of sites.h and forks, the hot function goes on in the child, and adds
 * to sums of the parent, which the child has not mapped. So the child maps private memory at the addresses of the sums.
 */
#include "agent/sites/sites.h"
#include "target/fork_placeholder.h"

/*
 * Before fork(): stores for which part of the sums the child must map private memory (fork_placeholder.h). This is only
 * the part that is backed in the parent, because mlockall(2) in the child allocates all memory that the child maps.
 */
void sites_before_fork(void)
{
    bool counts = sites_counting && process_has_ledger();
    fork_placeholder_note(PART_SITE_SUMS, process.ledger.regions[LEDGER_SITE_SUMS],
                          counts ? load_acquire(&process.ledger.header->regions[LEDGER_SITE_SUMS].ready_bytes)
                                 : 0);
}
