/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_REPORT_JSON_PARTS_H
#define VIEW_REPORT_JSON_PARTS_H

/*
 * JSON parts that reports, diffs and the summary of a run share; common.h has the others. For report_json.c,
 * diff_json.c and run_json.c only.
 */

#include "model/profile/rollup.h"
#include "view/formats/json.h"
#include "view/profile/profile_summary.h"
#include "view/profile/report_json.h"

/** The words for enum rollup_group and enum rollup_sort. */
extern const char *const report_json_groups[], *const report_json_sorts[];

/** Writes an element of "processes". */
void report_json_image(struct json *j, const struct profile *p, const struct profile_image *i);
/** Writes the figures of a row or of all rows. */
void report_json_values(struct json *j, const char *key, const struct rollup_values *v);
/** Writes "lost", "unobserved", "cost" and "resident". */
void report_json_whole(struct json *j, const struct profile *p, const struct profile_summary *f);
/** Writes "lost". */
void report_json_lost(struct json *j, const struct profile *p, const struct profile_summary *f);
/** Writes "unobserved". */
void report_json_unobserved(struct json *j, const struct profile *p);

#endif
