/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_DIFF_VIEW_H
#define VIEW_DIFF_VIEW_H

/*
 * What grew and what shrank: what `allium diff` prints, for people and as JSON (schema "allium-diff", version 1: see
 * allium-json(5), which changes with this file).
 *
 * Runs in: the tool. Threads: pure, but for the time zone. Owns: nothing. Writes to the sink only.
 */

#include "model/profile/profile_diff.h"
#include "view/text/sink.h"
#include "view/text/text.h"

/** A condition that was asked about. */
struct diff_verdict {
    const char *condition; /* as it was written */
    bool met;
};

struct diff_view_options {
    struct text_style style;                /* for people */
    const char *source[PROFILE_PAIR_SIDES]; /* what was read */
    const char *filter;                     /* how it was narrowed, in words; NULL: not at all */
    uint32_t top;                           /* rows; 0: all */
    uint32_t frames;                        /* of each stack, for people; 0: all */
    const struct diff_verdict *verdicts;    /* for JSON */
    size_t n_verdicts;
};

void diff_write(struct sink *out, const struct diff *d, const struct diff_view_options *o);
void diff_json_write(struct sink *out, const struct diff *d, const struct diff_view_options *o);

/**
 * Time from before to after, of the images that both have; negative when after is the earlier one; 0: there is none.
 */
int64_t diff_apart_ns(const struct diff *d);
/** Whether all there is on both sides are moments of the same images: then there is such a thing as a rate. */
bool diff_is_of_moments(const struct diff *d);

#endif
