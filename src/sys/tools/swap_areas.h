/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_SWAP_AREAS_H
#define SYS_SWAP_AREAS_H

/*
 * The swap areas of the machine by their files, and the kernel's own totals of swapped-in pages.
 *
 * Runs in: the tool.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct swap_area {
    uint64_t inode;
    uint32_t device; /* as in the kernel: the minor number in the lower 20 bits */
    bool is_zram;
    char *path;
};

/** All areas that were in use at any time since the first swap_areas_read(). */
struct swap_areas {
    struct VEC(struct swap_area) all;
};

/** Adds the areas that /proc/swaps has now. */
void swap_areas_read(struct swap_areas *a);
void swap_areas_release(struct swap_areas *a);
/** Returns the area of that file; NULL: none is known. */
const struct swap_area *swap_areas_find(const struct swap_areas *a, uint32_t device, uint64_t inode);

/** Pages, since the machine was booted. */
struct swap_totals {
    uint64_t device;     /* pswpin: read from a device or zram */
    uint64_t zswap;      /* zswpin */
    uint64_t zero;       /* swpin_zero */
    uint64_t read_ahead; /* swap_ra: of all these */
};

void swap_totals_read(struct swap_totals *t);

#endif
