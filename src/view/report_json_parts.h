/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_REPORT_JSON_PARTS_H
#define VIEW_REPORT_JSON_PARTS_H

/*
 * What a report and a diff have in common as JSON. For report_json.c and diff_json.c only.
 */

#include "view/facts.h"
#include "view/json.h"
#include "view/report_json.h"

/** Words for enum rollup_group and enum rollup_sort. */
extern const char *const report_json_groups[], *const report_json_sorts[];

/** An element of "processes". */
void report_json_image(struct json *j, const struct profile *p, const struct profile_image *i);
/** "stack_end" and "stack"; without `addresses` those are null. */
void report_json_stack(struct json *j, const struct profile *p, uint32_t stack, bool addresses);
/** "periods_bytes". */
void report_json_periods(struct json *j, const struct profile *p, const struct facts *f);
/** "lost". */
void report_json_lost(struct json *j, const struct profile *p, const struct facts *f);

#endif
