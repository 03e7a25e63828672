/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_LOSSES_VIEW_H
#define VIEW_LOSSES_VIEW_H

/*
 * What a table of kernel events lacks: events that were lost or left out, and how the walks of sampled stacks
 * ended.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "view/text/sink.h"

struct losses_count {
    uint64_t n;
    const char *words; /* as text_add_words() takes them: "event{s} lost: the ring was full" */
    const char *key;   /* in JSON; NULL: not there */
    bool lost;         /* something is missing because of it */
};
struct losses_counts VEC(struct losses_count);

/** Sampled user stacks. */
struct losses_samples {
    uint32_t events_each;       /* one stack for so many events */
    bool estimates;             /* figures are computed from them, with an interval */
    uint64_t taken, in_exec;    /* in_exec: taken while the program was being replaced, so without a stack */
    uint64_t whole;             /* walks that reached the end of the stack */
    struct losses_counts ends;  /* walks that did not, by their reason */
    uint64_t frames, not_found; /* not_found: frames in no known code */
};

struct losses_view {
    const struct losses_counts *counts;   /* NULL: unknown, the recording goes on or was cut off */
    const struct losses_samples *samples; /* NULL: user stacks are not sampled */
};

/** Appends the notes (view/text/notes.h): each count that is not 0, and "nothing was lost" if so. */
void losses_view_note(struct buf *notes, const struct losses_view *v);
/** Writes an object of one line: {"lost":{...}}. */
void losses_view_json(struct sink *out, const struct losses_view *v);

#endif
