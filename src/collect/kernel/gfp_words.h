/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_GFP_WORDS_H
#define COLLECT_GFP_WORDS_H

/*
 * Words that this kernel has for the GFP flags in its events. Read from tracefs, where it is mounted
 * (nothing is mounted for it), and from BTF; what neither tells stays a number.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its tables, until gfp_words_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/kernel/gfp.h"

enum gfp_words_source {
    GFP_WORDS_NONE, /* flags are shown in hex */
    GFP_WORDS_BTF, /* bits are the kernel's; composed masks as include/linux/gfp_types.h has had them since 6.10 */
    GFP_WORDS_FORMAT, /* the kernel's own table: the same text as its traces have */
};

struct gfp_words {
    enum gfp_words_source gfp_from;
    struct gfp_names gfp;
};

/** Never fails: what cannot be read is left out. */
void gfp_words_read(struct gfp_words *w);
void gfp_words_release(struct gfp_words *w);

/** Where tracefs is mounted: a folder in `out`. False: nowhere. */
bool gfp_words_tracefs(struct buf *out);

#endif
