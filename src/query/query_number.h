/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_QUERY_NUMBER_H
#define QUERY_QUERY_NUMBER_H

/*
 * Values of the numeric field types, as text and as integers. For src/query only.
 */

#include "base/buf.h"
#include "query/query.h"

/** Parses "4k", "-1.5MiB", "5m", "1h30m", "42" into bytes, ns or a count; fractions are cut off. Returns 0,
 * -EINVAL or -ERANGE. */
int query_number_read(enum query_type type, const char *text, int64_t *value);
/** Appends the shortest whole number with a unit that reads back as exactly this value. */
void query_number_print(enum query_type type, int64_t value, struct buf *out);
/** Returns the name of such a value for error messages: `a size`. */
const char *query_number_name(enum query_type type);
const char *query_number_example(enum query_type type);

#endif
