/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_ADDRESS_SPACES_INTERNAL_H
#define COLLECT_ADDRESS_SPACES_INTERNAL_H

/* What the parts of address_spaces.h share; nobody else includes this. */

#include "collect/addrspace/address_spaces.h"
#include "collect/addrspace/process_history.h"

struct spaces {
    struct sideband *band;
    struct lives lives;
    uint64_t back_ns;
    uint64_t newest_ns; /* of the records seen */
    uint64_t gap_ns;    /* the latest time at which something was missing */
    uint64_t lost, readings, readings_failed;
    uint64_t met_pid; /* spaces_meet() has come so far */
};

/* Nobody may ask for earlier times. */
static inline uint64_t spaces_settled_ns(const struct spaces *s)
{
    return s->newest_ns > s->back_ns ? s->newest_ns - s->back_ns : 0;
}

/* Reads what the process maps now, which is taken to have been so since since_ns. Errors as of spaces_reread(). */
int spaces_read_life(struct spaces *s, struct life *life, uint64_t since_ns);
/* Before it is asked: reads what records did not tell. What has ended stays as it is. */
void spaces_complete(struct spaces *s, struct life *life);

#endif
