/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_REPORT_PARTS_H
#define VIEW_REPORT_PARTS_H

/*
 * The parts of a report, each in a file of its own. For the views of src/view only.
 */

#include "view/profile/profile_summary.h"
#include "view/profile/report.h"
#include "view/text/columns.h"

/** "sqlbench (4242)" or "3 processes", and how it ended. */
void report_add_title(struct buf *b, const struct profile *p, const struct profile_summary *f,
                      const struct text_style *style);
/** "sampled every 512 KiB on average", "exact: every allocation". */
void report_add_period(struct buf *b, const struct profile_summary *f, const struct text_style *style);
/** "38.1 MiB (30.8-47.0) at 14:03:12, 61 s after the start", without the time of several images; "-": not known. */
void report_add_peak(struct buf *b, const struct rollup *r, const struct text_style *style);
/** "live now", "at exit", "at the end", "live", "live then" at a past moment. */
const char *report_live_word(const struct profile_summary *f);
/** Why a profile without a process may be one, and how much may have gone unseen, if the period is known. */
void report_add_nothing(struct buf *b, const struct rollup *r, const struct profile_summary *f,
                        const struct text_style *style);
/** The rows of a rollup, the first `top` of them. `indent` blanks before each line. */
void report_rows(struct sink *out, const struct rollup *r, const struct report_options *o, unsigned indent);
/** Headers of the column of names, by enum rollup_group; "" of stacks, which are beneath their row. */
extern const char *const report_name_headers[];
/** The frames of a stack as lines beneath the grid's last row, `most` of them; 0: all. */
void report_add_stack(struct columns *rows, const struct profile *p, uint32_t stack, uint32_t most);
/** The same, from who asked on: wrappers are passed over. */
void report_add_asker(struct columns *rows, const struct profile *p, uint32_t stack, uint32_t most);
/** What was lost, under a heading. */
void report_lost(struct sink *out, const struct profile *p, const struct profile_summary *f,
                 const struct text_style *style, const char *heading);
/** "3 starts of PROGRAM, which is statically linked". */
void report_add_unobserved(struct buf *b, const struct profile *p, const struct profile_unobserved *u,
                           const struct text_style *style);
/** What ran without the agent, and why, under a heading; nothing if all had it. */
void report_unobserved(struct sink *out, const struct profile *p, const struct text_style *style,
                       const char *heading);
/** What was lost, what observing cost, what is not seen. */
void report_closing(struct sink *out, const struct profile *p, const struct profile_summary *f,
                    const struct text_style *style);

#endif
