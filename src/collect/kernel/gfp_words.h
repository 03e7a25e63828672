/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_GFP_WORDS_H
#define COLLECT_GFP_WORDS_H

/*
 * Words that this kernel has for the GFP flags in its events. Read from tracefs, where it is mounted
 * (nothing is mounted for it), and from BTF; what neither tells stays a number.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its tables, until kernel_words_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/kernel/gfp.h"

enum kernel_words_source {
    KERNEL_WORDS_NONE, /* flags are shown in hex */
    KERNEL_WORDS_BTF, /* bits are the kernel's; composed masks as include/linux/gfp_types.h has had them since 6.10 */
    KERNEL_WORDS_FORMAT, /* the kernel's own table: the same text as its traces have */
};

struct kernel_words {
    enum kernel_words_source gfp_from;
    struct gfp_names gfp;
};

/** Never fails: what cannot be read is left out. */
void kernel_words_read(struct kernel_words *w);
void kernel_words_release(struct kernel_words *w);

/** Where tracefs is mounted: a folder in `out`. False: nowhere. */
bool kernel_words_tracefs(struct buf *out);

#endif
