/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_GFP_WORDS_H
#define COLLECT_GFP_WORDS_H

/*
 * The names that the running kernel uses for the GFP flags in its events. They are read from tracefs, if it
 * is mounted (it is not mounted for this), and from BTF. A flag without a name stays a number.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/kernel/gfp.h"

enum gfp_words_source {
    GFP_WORDS_NONE, /* flags are shown in hex */
    /* the bits are the kernel's; composed masks are those of include/linux/gfp_types.h since 6.10 */
    GFP_WORDS_BTF,
    GFP_WORDS_FORMAT, /* the kernel's own table: the same text as in its traces */
};

struct gfp_words {
    enum gfp_words_source gfp_from;
    struct gfp_names gfp;
};

/** Never fails: tables that cannot be read are left out. */
void gfp_words_read(struct gfp_words *w);
void gfp_words_release(struct gfp_words *w);

/** Finds the mount point of tracefs. Returns false if it is not mounted. */
bool gfp_words_tracefs(struct buf *out);

#endif
