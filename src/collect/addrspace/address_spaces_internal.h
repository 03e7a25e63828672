/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_ADDRESS_SPACES_INTERNAL_H
#define COLLECT_ADDRESS_SPACES_INTERNAL_H

/* What the parts of address_spaces.h share; nobody else includes this. */

#include "collect/addrspace/address_spaces.h"
#include "collect/addrspace/process_history.h"

struct address_spaces {
    struct sideband *band;
    struct process_history lives;
    uint64_t back_ns;
    uint64_t newest_ns; /* of the records seen */
    uint64_t gap_ns;    /* the latest time at which something was missing */
    uint64_t lost, readings, readings_failed;
    uint64_t met_pid; /* address_spaces_meet() has come so far */
};

/* Nobody may ask for earlier times. */
static inline uint64_t address_spaces_settled_ns(const struct address_spaces *s)
{
    return s->newest_ns > s->back_ns ? s->newest_ns - s->back_ns : 0;
}

/* Reads what the process maps now, which is taken to have been so since since_ns. Errors as of
 * address_spaces_reread(). */
int address_spaces_read_life(struct address_spaces *s, struct process_life *life, uint64_t since_ns);
/* Before it is asked: reads what records did not tell. What has ended stays as it is. */
void address_spaces_complete(struct address_spaces *s, struct process_life *life);

#endif
