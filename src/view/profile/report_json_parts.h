/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_REPORT_JSON_PARTS_H
#define VIEW_REPORT_JSON_PARTS_H

/*
 * What only a report and a diff have in common as JSON; common.h has the rest. For report_json.c and diff_json.c only.
 */

#include "view/formats/json.h"
#include "view/profile/profile_summary.h"
#include "view/profile/report_json.h"

/** Words for enum rollup_group and enum rollup_sort. */
extern const char *const report_json_groups[], *const report_json_sorts[];

/** An element of "processes". */
void report_json_image(struct json *j, const struct profile *p, const struct profile_image *i);
/** "lost". */
void report_json_lost(struct json *j, const struct profile *p, const struct profile_summary *f);
/** "unobserved". */
void report_json_unobserved(struct json *j, const struct profile *p);

#endif
