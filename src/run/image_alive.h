/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_IMAGE_ALIVE_H
#define RUN_IMAGE_ALIVE_H

/* Finds out whether a process still maps a ledger. */

#include <stdbool.h>
#include <stdint.h>

#include "collect/ledger/ledger_dir.h"

struct image_alive {
    const struct ledger_entry *entry;
    int fd;
    uint64_t map_start, map_bytes; /* where the process maps the ledger's header */
    bool known;                    /* entry->pid is the process's number in our pid namespace */
};

bool image_is_alive(const struct image_alive *i);
/** Like image_is_alive(), for the last check: waits up to 200 ms for a process that is about to end. */
bool image_is_alive_still(const struct image_alive *i);

#endif
