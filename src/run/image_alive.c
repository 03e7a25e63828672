/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/image_alive.h"

#include <errno.h>
#include <time.h>

#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/process/proc.h"

#define ENDING_MS 200
#define MS        1000000

bool image_is_alive(const struct image_alive *i)
{
    struct ledger_header h;
    if (!ledger_copy_header(i->fd, &h, NULL) && h.state == LEDGER_DETACHED)
        return false;
    int held = i->entry->mapped ? -EINVAL : ledger_is_held(i->fd);
    return held < 0 ? proc_maps(i->entry->pid, i->map_start, i->map_bytes) && proc_runs(i->entry->pid) : held;
}

/* Returns whether the agent has recorded the end of the process, and no visible process maps the ledger. */
static bool has_left(const struct image_alive *i)
{
    struct ledger_header h;
    return !ledger_copy_header(i->fd, &h, NULL) && h.state != LEDGER_RUNNING && !ledger_scan_holder(i->entry);
}

/*
 * While another program reads /proc/PID, it holds the memory of the process, also after the process has ended; on a
 * busy machine for long. So a mapped ledger is not enough: the process must exist, or another process that shares
 * its memory.
 */
bool image_is_alive_still(const struct image_alive *i)
{
    for (int n = 0; image_is_alive(i) && n < ENDING_MS; n++) {
        bool runs = i->known && proc_runs(i->entry->pid);
        if (i->known && !runs)
            return ledger_scan_holder(i->entry) != 0;
        if (runs && proc_maps(i->entry->pid, i->map_start, i->map_bytes))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    }
    return image_is_alive(i) && (i->known || !has_left(i));
}
