/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_DIFF_VIEW_H
#define VIEW_DIFF_VIEW_H

/*
 * What grew and what shrank: the output of `allium diff`, for people and as JSON (schema "allium-diff",
 * see allium-json(5), which changes with this file).
 */

#include "model/profile/diff_per.h"
#include "model/profile/profile_diff.h"
#include "view/text/sink.h"
#include "view/text/text.h"

/** The result of a condition (--fail-if). */
struct diff_verdict {
    const char *condition; /* as the user wrote it */
    bool met;
    bool undecided;        /* the samples are too few to tell */
    uint64_t period_bytes; /* if it is undecided: the period that would tell; 0: of captures, see below */
    uint32_t captures;     /* the number of captures of each side that would tell; 0: none that is known */
};

struct diff_view_options {
    struct text_style style;                /* for people */
    const char *source[PROFILE_PAIR_SIDES]; /* the two sources; of several captures: all of them */
    const char *const *captures;            /* the source of each capture, those before first; for JSON */
    enum diff_per per;                      /* what the figures were divided by */
    const char *filter;                     /* the filter in words; NULL: none */
    uint32_t top;                           /* rows; 0: all */
    uint32_t frames;                        /* of each stack, for people; 0: all */
    const struct diff_verdict *verdicts;    /* for JSON */
    size_t n_verdicts;
};

/** "per second", "per event", "per boot"; "": nothing. */
extern const char *const diff_per_words[];

void diff_write(struct sink *out, const struct diff *d, const struct diff_view_options *o);
void diff_json_write(struct sink *out, const struct diff *d, const struct diff_view_options *o);

/**
 * Returns the time from before to after, of the images in both; negative when after is the earlier one; 0: no
 * image is in both.
 */
int64_t diff_apart_ns(const struct diff *d);
/** Returns whether both sides hold only moments of the same images. Only then is there a rate. */
bool diff_is_of_moments(const struct diff *d);

#endif
