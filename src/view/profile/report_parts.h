/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_REPORT_PARTS_H
#define VIEW_REPORT_PARTS_H

/* The parts of a report, each in a file of its own. Only for the views in src/view. */

#include "view/profile/profile_summary.h"
#include "view/profile/report.h"
#include "view/text/columns.h"

/** Appends "sqlbench (4242)" or "3 processes", and how it ended. */
void report_add_title(struct buf *b, const struct profile *p, const struct profile_summary *f,
                      const struct text_style *style);
/** Appends "sampled every 512 KiB on average", "exact: every allocation". */
void report_add_period(struct buf *b, const struct profile_summary *f, const struct text_style *style);
/** Appends "38.1 MiB (30.8-47.0) at 14:03:12, 61 s after the start", without the time if there are several
 * images; "-": not known. */
void report_add_peak(struct buf *b, const struct rollup *r, const struct text_style *style);
/** Returns "live now", "at exit", "at the end", "live", or "live then" for a time in the past. */
const char *report_live_word(const struct profile_summary *f);
/** Explains why the profile has no process, and how much may have been missed, if the period is known. */
void report_add_nothing(struct buf *b, const struct rollup *r, const struct profile_summary *f,
                        const struct text_style *style);
/** Says how much of the memory of an image is not in the figures, and what to do about it if its language is known. */
void report_add_unseen(struct buf *b, const struct profile *p, uint32_t image,
                       const struct text_style *style);
/** Writes the first `top` rows of a rollup, with `indent` blanks before each line. */
void report_rows(struct sink *out, const struct rollup *r, const struct report_options *o, unsigned indent);
/** The headings of the column of names, by enum rollup_group; "" for stacks, which are below their row. */
extern const char *const report_name_headers[];
/** Adds the frames of a stack as lines below the grid's last row, at most `most` of them; 0: all. */
void report_add_stack(struct columns *rows, const struct profile *p, uint32_t stack, uint32_t most);
/** Like the function above, from the frame on that requested the memory: wrappers are skipped. */
void report_add_asker(struct columns *rows, const struct profile *p, uint32_t stack, uint32_t most);
/** Writes the losses, under a heading. */
void report_lost(struct sink *out, const struct profile *p, const struct profile_summary *f,
                 const struct text_style *style, const char *heading);
/** Appends "3 starts of PROGRAM, which is statically linked". */
void report_add_unobserved(struct buf *b, const struct profile *p, const struct profile_unobserved *u,
                           const struct text_style *style);
/** Writes the programs that ran without the agent, and why, under a heading; nothing if there are none. */
void report_unobserved(struct sink *out, const struct profile *p, const struct text_style *style,
                       const char *heading);
/** Writes the losses, the cost of observing, and what is not observed. */
void report_footer(struct sink *out, const struct profile *p, const struct profile_summary *f,
                   const struct text_style *style);

#endif
