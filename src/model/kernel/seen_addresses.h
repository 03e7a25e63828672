/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_SEEN_ADDRESSES_H
#define MODEL_SEEN_ADDRESSES_H

/*
 * A set of addresses of objects that only grows: a bit for each 4 bytes of the pages that have any. It takes less than
 * a tenth of the memory in which the objects lie.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the set, until seen_addresses_release().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_block {
    uint64_t number; /* of 2 KiB; plus 1, as 0 is an empty slot */
    uint64_t bits[8];
};

struct seen_addresses {
    struct seen_block *blocks; /* by number: open addressing, at most half full */
    size_t n, mask;
};

void seen_addresses_init(struct seen_addresses *s);
void seen_addresses_release(struct seen_addresses *s);
/** Adds an address, which is a multiple of 4. Returns whether it was there already. */
bool seen_addresses_add(struct seen_addresses *s, uint64_t address);

#endif
