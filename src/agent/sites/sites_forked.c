/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children of handlers that fork in the midst of a hot half of sites.h: that half goes on adding to sums of the
 * parent, which are not mapped there.
 */
#include "agent/sites/sites.h"
#include "target/fork_placeholder.h"

/* The memory is no larger than it must be: mlockall(2) in the child takes it for the program's own. */
void sites_before_fork(void)
{
    bool counts = sites_on && process_has_ledger();
    fork_placeholder_note(PART_SITE_SUMS, process.ledger.regions[LEDGER_SITE_SUMS],
                          counts ? load_acquire(&process.ledger.header->regions[LEDGER_SITE_SUMS].ready_bytes)
                                 : 0);
}
