/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_ADDRESS_SPACES_INTERNAL_H
#define COLLECT_ADDRESS_SPACES_INTERNAL_H

/* Shared by the files that implement address_spaces.h; other files must not include this. */

#include "collect/addrspace/address_spaces.h"
#include "collect/addrspace/process_history.h"

struct address_spaces {
    struct sideband *band;
    struct process_history lives;
    uint64_t back_ns;
    uint64_t newest_ns; /* of the records seen */
    uint64_t gap_ns;    /* the latest time at which records were missing */
    uint64_t lost, readings, readings_failed;
    uint64_t met_pid; /* how far address_spaces_meet() has come */
};

/* Queries for earlier times are not allowed. */
static inline uint64_t address_spaces_oldest_query_ns(const struct address_spaces *s)
{
    return s->newest_ns > s->back_ns ? s->newest_ns - s->back_ns : 0;
}

/* Reads the present mappings of the process, and records them as of since_ns. Errors as in
 * address_spaces_reread(). */
int address_spaces_read_life(struct address_spaces *s, struct process_life *life, uint64_t since_ns);
/* Before a query: reads what records did not tell. Does nothing for an ended process. */
void address_spaces_complete(struct address_spaces *s, struct process_life *life);

#endif
