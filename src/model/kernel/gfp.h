/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_GFP_H
#define MODEL_GFP_H

/*
 * Names of GFP flags, as the kernel prints them (%pGg): "GFP_KERNEL|__GFP_ZERO". Bits have other numbers in other
 * kernels, so that a table of names is made of what one kernel says of itself: the "print fmt" of an event of kmem,
 * which is its own table, or its enum of bits (BTF, since 6.10), to which only the composed masks are added that it has
 * no word for.
 *
 * Runs in: the tool. Threads: pure. Owns: a table owns its names, until gfp_release().
 */

#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"

#define GFP_NAME_BYTES 40

struct gfp_name {
    uint64_t mask; /* not 0 */
    char name[GFP_NAME_BYTES];
};

/** In the order in which they are tried: of those that fit, the first one takes its bits away from the rest. */
struct gfp_names {
    struct VEC(struct gfp_name) all;
};

/** The kernel's enum: "___GFP_ZERO_BIT" and its number. */
struct gfp_bits VEC(struct gfp_name);

void gfp_release(struct gfp_names *g);

/** Takes one value of an enum; what is no bit of GFP flags is left out. `mask` becomes 1 << number. */
void gfp_bits_add(struct gfp_bits *bits, const char *name, uint64_t number);

/**
 * Reads the table of names in an event's format file. `bits` are known by name there (6.10 to 6.12 print
 * "1UL << ___GFP_ZERO_BIT"). 0; or -ENOENT: the text has no such table; -EPROTO: it has one that cannot be read whole.
 * Nothing is added then.
 */
int gfp_from_format(struct gfp_names *g, const char *format, const struct gfp_bits *bits);

/** A table made of bits alone. -ENOENT: there are none. */
int gfp_from_bits(struct gfp_names *g, const struct gfp_bits *bits);

/** Appends the names of the flags, with "|" between them; "none" for 0; what has no name in hex. */
void gfp_format(const struct gfp_names *g, uint64_t flags, struct buf *out);

#endif
