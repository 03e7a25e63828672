/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/profile_summary.h"

#include "base/units.h"
#include "model/profile/rollup.h"
#include "view/text/notes.h"

const struct profile_summary_loss profile_summary_losses[PROFILE_LOSSES] = {
    [PROFILE_LOST_SAMPLES] = {"samples", "sample",
                              "found no room in the ledger and are missing from all figures",
                              "Start with a larger --ledger-size."},
    [PROFILE_LOST_LIVE] = {"live", "sample",
                           "counted as allocated could not be followed: live figures are too low",
                           "Start with a larger --ledger-size."},
    [PROFILE_LOST_FREES_UNSEEN] =
        {"frees_unseen", "free",
         "bypassed the agent, and were noticed when the address was allocated again: until then live figures "
         "were too high",
         "Do not rely on the oldest objects; the program frees memory through functions of its own."},
    [PROFILE_LOST_STACK_CUT] = {"stacks_cut", "stack",
                                "deeper than the limit, marked [cut]: outer callers are unknown",
                                "Use the innermost calls, or --by function."},
    [PROFILE_LOST_STACK_BROKEN] =
        {"stacks_broken", "stack", "could not be walked to the end, marked with the reason in [brackets]",
         "Compile the code with -fasynchronous-unwind-tables; JIT code cannot be walked."},
    [PROFILE_LOST_THREADS] = {"threads", "sample",
                              "of threads for which the ledger has no room, shown as \"other threads\"",
                              "Rows by thread are incomplete; all other figures are complete."},
    [PROFILE_LOST_GROWTH] = {"growth", "refusal", "to let the ledger grow",
                             "The lines above show what was lost; start with a larger --ledger-size."},
    [PROFILE_LOST_CHILDREN] =
        {"children", "start",
         "of programs that cannot carry the agent or have no place for a ledger, and could not be recorded "
         "by name",
         "They ran unobserved, unless they are among the processes; their names are not known."},
    [PROFILE_FAILED_REQUESTS] = {"failed_requests", "request", "for memory failed: the program received NULL",
                                 "Check ulimit -v, the limit of the memory cgroup, and the requested size."},
    [PROFILE_INHERITED_FREES] =
        {"inherited_frees", "object",
         "of a parent process freed by its fork child; they still count as live in the parent",
         "This is normal."},
};

const char *const profile_summary_loss_words[PROFILE_LOSSES] = {
    [PROFILE_LOST_SAMPLES] = "sample{s} found no room in the ledger",
    [PROFILE_LOST_LIVE] = "live sample{s} could not be followed",
    [PROFILE_LOST_FREES_UNSEEN] = "free{s} bypassed the agent",
    [PROFILE_LOST_STACK_CUT] = "stack{s} {is|are} deeper than the limit, and {is|are} cut",
    [PROFILE_LOST_STACK_BROKEN] = "stack{s} could not be walked to the end",
    [PROFILE_LOST_THREADS] = "sample{s} {is|are} of threads for which the ledger has no room",
    [PROFILE_LOST_GROWTH] = "time{s} a ledger could not grow",
    [PROFILE_LOST_CHILDREN] = "program start{s} {was|were} not observed",
};

static void add_image(struct profile_summary *f, const struct profile *p, uint32_t i)
{
    const struct profile_image *image = &p->images.at[i];
    if (f->main_image == PROFILE_NONE || image->peak_bytes > p->images.at[f->main_image].peak_bytes)
        f->main_image = i;
    f->running += image->state == PROFILE_IMAGE_RUNNING;
    f->exited += image->state == PROFILE_IMAGE_EXITED;
    f->ended += image->state == PROFILE_IMAGE_ENDED || image->state == PROFILE_IMAGE_DETACHED;
    f->cut += image->state == PROFILE_IMAGE_CUT;
    f->signal = image->signal ? image->signal : f->signal;
    f->past += image->past;
    f->unread += image->past && image->taken_ns <= image->began_ns;
    if (!f->began_ns || image->began_ns < f->began_ns)
        f->began_ns = image->began_ns;
    if (image->taken_ns > f->taken_ns)
        f->taken_ns = image->taken_ns;
    if (image->taken_ns > image->began_ns)
        f->observed_ns += image->taken_ns - image->began_ns;
    f->off_ns += image->off_ns;
    for (int k = 0; k < PROFILE_LOSSES; k++)
        f->losses[k] += image->losses[k];
    f->torn_samples += image->torn_samples;
    if (image->operations_begun > image->operations_done)
        f->under_way += image->operations_begun - image->operations_done;
    f->inconsistent |= image->inconsistent;
    if (!*f->full)
        f->full = profile_text(p, image->ledger_full);
    f->cold_ns += image->cold_ns;
    f->ledger_bytes += image->ledger_bytes;
    f->ledger_limit_bytes += image->ledger_limit_bytes;
    f->resident.rss_anon_bytes += image->rss_anon_bytes;
    f->resident.images += image->rss_anon_bytes != 0;
}

struct profile_summary profile_summary_of(const struct profile *p)
{
    uint64_t silent = profile_silent_period(p);
    struct profile_summary f = {
        .main_image = PROFILE_NONE, .full = "", .period_low = silent, .period_high = silent};
    for (uint32_t i = 0; i < p->images.len; i++)
        add_image(&f, p, i);
    vec_each (const struct profile_cell, c, &p->cells) {
        struct profile_sums live = profile_live(c);
        f.samples += c->allocated.samples;
        f.live_samples += live.samples;
        if (!f.period_low || c->period_bytes < f.period_low)
            f.period_low = c->period_bytes;
        if (c->period_bytes > f.period_high)
            f.period_high = c->period_bytes;
        if (p->images.at[c->image].rss_anon_bytes)
            profile_estimate_bytes(&f.resident.live, c, &live);
    }
    vec_each (const struct profile_sample, s, &p->samples) {
        const struct profile_cell *c = &p->cells.at[s->cell];
        if (!p->images.at[c->image].rss_anon_bytes || p->images.at[c->image].past)
            continue;
        if (s->slack_bytes == PROFILE_SLACK_UNKNOWN)
            f.resident.slack_unknown = true;
        else
            f.resident.slack_bytes += rollup_weight(s->size_bytes, c->period_bytes) * (double)s->slack_bytes;
    }
    return f;
}

bool profile_summary_any_lost(const struct profile *p, const struct profile_summary *f)
{
    for (int k = 0; k < PROFILE_FAILED_REQUESTS; k++)
        if (f->losses[k])
            return true;
    return f->off_ns || f->torn_samples || f->inconsistent || *f->full || p->images_dropped || f->unread;
}

/* In a trace these two are losses of its rings, not of a ledger. */
static const char *words_of(const struct profile *p, enum profile_loss k)
{
    if (p->trace.known && k == PROFILE_LOST_SAMPLES)
        return "event{s} {was|were} lost, and {is|are} in no figure";
    if (p->trace.known && k == PROFILE_LOST_FREES_UNSEEN)
        return "block{s} {was|were} freed by an event that was lost";
    return profile_summary_loss_words[k];
}

void profile_summary_note_losses(struct buf *notes, const struct profile *p, const struct profile_summary *f,
                                 const struct text_style *style)
{
    char off[UNITS_TEXT_BYTES], observed[UNITS_TEXT_BYTES];
    for (int k = 0; k < PROFILE_FAILED_REQUESTS; k++)
        notes_add_count(notes, f->losses[k], words_of(p, (enum profile_loss)k));
    if (*f->full) {
        buf_addstr(notes, "a ledger stopped growing: ");
        text_add_name(notes, style, f->full);
        buf_addch(notes, '\n');
    }
    if (f->off_ns)
        notes_add(notes, "sampling was off for %s of %s", units_format_duration(off, (double)f->off_ns),
                  units_format_duration(observed, (double)f->observed_ns));
    notes_add_count(notes, f->torn_samples,
                    "live sample{s} changed while {it was|they were} read: {its|their} age is unknown");
    if (f->inconsistent)
        notes_add(notes, "a ledger contained invalid records, which are left out");
    notes_add_count(notes, p->images_dropped, "process image{s} {was|were} not stored: there were too many");
    notes_add_count(notes, f->unread, "process image{s} had no snapshot yet at this time");
}

void profile_summary_note_missing(struct buf *notes, const struct profile *p, const struct profile_summary *f,
                                  const struct text_style *style)
{
    uint64_t unobserved = 0;
    for (size_t i = 0; i < p->unobserved.len; i++)
        unobserved += p->unobserved.at[i].processes;
    profile_summary_note_losses(notes, p, f, style);
    notes_add_count(notes, unobserved, "start{s} of programs that could not be observed");
}
