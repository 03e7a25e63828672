/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_IMAGE_ALIVE_H
#define RUN_IMAGE_ALIVE_H

/*
 * Does a process still map a ledger?
 *
 * Runs in: the tool. Threads: one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collect/ledger/ledger_dir.h"

struct image_alive {
    const struct ledger_entry *entry;
    int fd;
    uint64_t map_start, map_bytes; /* where the process maps the ledger's header */
    bool known;                    /* entry->pid is the number of the process in our namespace */
};

bool image_is_alive(const struct image_alive *i);
/** The same for the last time: waits up to 200 ms for a process that is about to end. */
bool image_is_alive_still(const struct image_alive *i);

#endif
