/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_REPORT_JSON_PARTS_H
#define VIEW_REPORT_JSON_PARTS_H

/*
 * What only a report and a diff have in common as JSON; pieces.h has the rest. For report_json.c and diff_json.c only.
 */

#include "view/facts.h"
#include "view/json.h"
#include "view/report_json.h"

/** Words for enum rollup_group and enum rollup_sort. */
extern const char *const report_json_groups[], *const report_json_sorts[];

/** An element of "processes". */
void report_json_image(struct json *j, const struct profile *p, const struct profile_image *i);
/** "lost". */
void report_json_lost(struct json *j, const struct profile *p, const struct facts *f);
/** "unobserved". */
void report_json_unobserved(struct json *j, const struct profile *p);

#endif
