/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_FRAG_VIEW_H
#define VIEW_FRAG_VIEW_H

/*
 * Fragmentation of the kernel's memory on a screen, or as JSON. The sentences come first, the lists below them. See
 * allium-sys-frag(1).
 *
 * Runs in: the tool. Threads: pure, but for the time zone. Owns: nothing.
 */

#include "model/kernel/frag.h"
#include "model/table/table.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct frag_report {
    uint64_t taken_ns; /* CLOCK_REALTIME */
    bool recorded;     /* else it is of this machine, now */
    const struct frag *frag;
    const struct table *sites;     /* frag_sites_table(); NULL: there is no capture */
    const struct table *fallbacks; /* frag_fallbacks_table(); NULL: they are not known */
    bool pins_known;               /* `sites` tells what is pinned */
    uint64_t lost;                 /* events of the capture: its figures may be too high or too low */
    /* the state before, for rates of compaction; NULL: there is none, and counts are since boot */
    const struct memory_state *before;
    uint64_t interval_ns; /* since then */
    uint32_t top;         /* rows of each list; 0: all */
};

void frag_write(struct sink *out, const struct frag_report *r, const struct text_style *style);
/** Writes the same in one line: schema allium-sys-frag, see allium-json(5). */
void frag_json_write(struct sink *out, const struct frag_report *r);

/** Figures of compaction, with their keys in JSON. */
struct frag_compaction_name {
    enum memory_figure figure;
    const char *key;
};
#define FRAG_COMPACTION_FIGURES 10
extern const struct frag_compaction_name frag_compaction_names[FRAG_COMPACTION_FIGURES];
/** Returns whether the figure is known; `count`: since boot, or since `before` was taken. */
bool frag_compaction(const struct frag_report *r, enum memory_figure f, uint64_t *count);

#endif
