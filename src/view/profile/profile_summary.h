/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_PROFILE_SUMMARY_H
#define VIEW_PROFILE_SUMMARY_H

/*
 * Facts about a profile as a whole: its time, its periods, losses, cost of observing, and how much of the
 * processes' memory it explains. Sums over all images, whatever filter a report has.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"
#include "view/text/text.h"

struct profile_summary {
    uint32_t main_image; /* the image with the highest peak; PROFILE_NONE: there is none */
    uint32_t running, exited, ended;
    uint32_t cut;                     /* number of images last seen in a recording that was cut short */
    int32_t signal;                   /* the signal that ended one of them; 0: none, or not known */
    uint32_t past;                    /* number of images shown as they were before their end */
    uint32_t unread;                  /* how many of these had no snapshot before that time */
    uint64_t began_ns, taken_ns;      /* CLOCK_REALTIME: start of the first image, end of the last one */
    uint64_t observed_ns, off_ns;     /* sums over the images; off_ns is the part with sampling off */
    uint64_t period_low, period_high; /* in bytes; 0: there is no cell, and no profile_silent_period() */
    uint64_t samples, live_samples;   /* taken; still live */
    uint64_t losses[PROFILE_LOSSES];  /* each summed over the images */
    /* as in struct profile_image: torn samples, operations begun less done */
    uint64_t torn_samples, under_way;
    bool inconsistent; /* some image is inconsistent */
    const char *full;  /* why the first full ledger is full; "" */
    uint64_t cold_ns;  /* CPU time */
    uint64_t ledger_bytes, ledger_limit_bytes;
    struct {
        struct estimate live; /* bytes, of the images whose RssAnon is known */
        bool slack_unknown;   /* not known for some live samples: `slack_bytes` is too low */
        /* of the same images: usable less requested bytes of the live samples; not for a time in the past */
        double slack_bytes;
        uint64_t rss_anon_bytes; /* 0: unknown for all images */
        uint32_t images;         /* number of images for which it is known */
    } resident;
};

struct profile_summary profile_summary_of(const struct profile *p);
/** Returns true if every object was sampled. */
static inline bool profile_summary_exact(const struct profile_summary *f)
{
    return f->period_high == 1;
}
/** A loss of each kind, "stack{s} {is|are} ...", as text_add_words() takes it; NULL: the kind is no loss. */
extern const char *const profile_summary_loss_words[PROFILE_LOSSES];
/** Returns whether anything is missing or wrong. PROFILE_FAILED_REQUESTS and the kinds behind it do not
 * count. */
bool profile_summary_any_lost(const struct profile *p, const struct profile_summary *f);
/** Adds a note (view/text/notes.h) for each of these losses. */
void profile_summary_note_losses(struct buf *notes, const struct profile *p, const struct profile_summary *f,
                                 const struct text_style *style);
/** Adds notes on all that is missing from an exported profile: losses, and programs that were not observed. */
void profile_summary_note_missing(struct buf *notes, const struct profile *p, const struct profile_summary *f,
                                  const struct text_style *style);

/** One kind of loss: its JSON key, and the description and advice for people. */
struct profile_summary_loss {
    const char *key;
    const char *noun;   /* the thing that is counted, in the singular */
    const char *what;   /* the continuation of "12 samples" */
    const char *advice; /* whole sentences */
};
extern const struct profile_summary_loss profile_summary_losses[PROFILE_LOSSES];

#endif
