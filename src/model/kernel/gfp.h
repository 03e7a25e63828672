/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_GFP_H
#define MODEL_GFP_H

/*
 * Names of GFP flags, as the kernel prints them (%pGg): "GFP_KERNEL|__GFP_ZERO". The bits have different
 * numbers in different kernels, so a table is made from the running kernel: from the "print fmt" of an event
 * of kmem, which is the kernel's own table, or from the kernel's enum of bits (BTF, since 6.10), with the
 * composed masks added that the enum lacks.
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

/** Sorted in the order in which the names are tried. A name that matches removes its bits from the rest of
 * the flags. */
struct gfp_names {
    struct VEC(struct gfp_name) all;
};

/** The kernel's enum: names such as "___GFP_ZERO_BIT", with their numbers. */
struct gfp_bits VEC(struct gfp_name);

void gfp_release(struct gfp_names *g);

/** Adds one value of an enum, if it is a bit of the GFP flags. `mask` becomes 1 << number. */
void gfp_bits_add(struct gfp_bits *bits, const char *name, uint64_t number);

/**
 * Reads the table of names in an event's format file. `bits` supplies the numbers of named bits (6.10 to 6.12
 * print "1UL << ___GFP_ZERO_BIT"). Returns 0; -ENOENT: the text has no such table; -EPROTO: the table cannot
 * be read whole. On an error nothing is added.
 */
int gfp_from_format(struct gfp_names *g, const char *format, const struct gfp_bits *bits);

/** Makes a table from bits alone. -ENOENT: there are none. */
int gfp_from_bits(struct gfp_names *g, const struct gfp_bits *bits);

/** Appends the names of the flags, with "|" between them; "none" for 0. Bits without a name follow in hex. */
void gfp_format(const struct gfp_names *g, uint64_t flags, struct buf *out);

#endif
