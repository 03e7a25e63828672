/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_PROFILE_SUMMARY_H
#define VIEW_PROFILE_SUMMARY_H

/*
 * What views say of a profile as a whole: its time, its periods, what was lost, what observing cost, how much of the
 * processes' memory it explains. Sums over all images, whatever a report is narrowed to.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"

struct profile_summary {
    uint32_t main_image; /* the one with the highest peak; PROFILE_NONE: there is none */
    uint32_t running, exited, ended;
    uint32_t cut;                     /* seen last in a recording that was cut short */
    int32_t signal;                   /* that ended one of them; 0: none, or not known */
    uint32_t past;                    /* shown as they were at a moment before their end */
    uint32_t unread;                  /* of these: their books were not kept before that moment */
    uint64_t began_ns, taken_ns;      /* CLOCK_REALTIME; of the first and of the last image */
    uint64_t observed_ns, off_ns;     /* sums over the images; of it, with sampling off */
    uint64_t period_low, period_high; /* bytes; 0: no cell, and no profile_silent_period() */
    uint64_t samples, live_samples;   /* taken; still live */
    uint64_t losses[PROFILE_LOSSES];  /* each summed over the images */
    uint64_t torn_samples, under_way; /* as in struct profile_image: torn, begun less done */
    bool inconsistent;                /* an image is */
    const char *full;                 /* why the first ledger that is full is full; "" */
    uint64_t cold_ns;                 /* CPU time */
    uint64_t ledger_bytes, ledger_limit_bytes;
    struct {
        struct estimate live; /* bytes, of the images whose RssAnon is known */
        bool slack_unknown;   /* of some live samples: `slack_bytes` is too low */
        double slack_bytes;   /* of the same: usable less requested, from the live samples; not of the past */
        uint64_t rss_anon_bytes; /* 0: unknown of all images */
        uint32_t images;         /* of which it is known */
    } resident;
};

struct profile_summary profile_summary_of(const struct profile *p);
/** Every object was seen. */
static inline bool profile_summary_exact(const struct profile_summary *f)
{
    return f->period_high == 1;
}
/** Whether anything is missing or wrong for it: PROFILE_FAILED_REQUESTS and what follows it is not that. */
bool profile_summary_any_lost(const struct profile *p, const struct profile_summary *f);

/** One kind of loss: its JSON key, and for people what happened and what to do. */
struct profile_summary_loss {
    const char *key;
    const char *noun;   /* what is counted, in the singular */
    const char *what;   /* goes on after "12 samples" */
    const char *advice; /* sentences */
};
extern const struct profile_summary_loss profile_summary_losses[PROFILE_LOSSES];

#endif
