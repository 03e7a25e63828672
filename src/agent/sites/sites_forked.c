/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children of handlers that fork in the midst of a hot half of sites.h: that goes on adding to sums of the parent,
 * which are not mapped there.
 */
#include <sys/mman.h>

#include "agent/sites/sites.h"
#include "base/sigsafe/syscall.h"

static uint64_t ready_bytes; /* of sums, when the process forked: no site has others */

void sites_before_fork(void)
{
    if (!sites_on || !process_is_current() || load_acquire(&process.stage) != LEDGER_STAGE_MADE)
        return;
    uint64_t ready = load_acquire(&process.ledger.header->regions[LEDGER_SITE_SUMS].ready_bytes);
    if (ready > load_relaxed(&ready_bytes)) /* another thread may fork, too */
        store_relaxed(&ready_bytes, ready);
}

/*
 * What was put in the place of an ancestor's sums goes when nothing that handlers interrupted can be about to write to
 * it. It is no larger than it must be: mlockall(2) in the child takes it for the program's own.
 */
void sites_after_fork(void)
{
    static struct {
        char *at;
        uint64_t bytes;
    } put[SITES_GENERATIONS];
    static unsigned forks;
    uint64_t bytes = ready_bytes;
    ready_bytes = 0;
    if (!bytes ||
        process.ledger.sealed) /* the call might be the last, for something that hardly ever happens */
        return;
    unsigned turn = forks++ % SITES_GENERATIONS;
    if (put[turn].at)
        sys_call(SYS_munmap, put[turn].at, put[turn].bytes);
    long p = sys_call(SYS_mmap, process.ledger.regions[LEDGER_SITE_SUMS], bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    put[turn].at = sys_failed(p) ? NULL : (char *)p;
    put[turn].bytes = bytes;
}
