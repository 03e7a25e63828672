/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_FIELD_H
#define QUERY_FIELD_H

/*
 * Field names: finding one, and what to say when there is none. For src/query, and for other names that people type.
 */

#include "base/buf.h"
#include "query/query.h"

#define QUERY_NO_FIELD SIZE_MAX

/** The field's index, or QUERY_NO_FIELD. The name is `len` bytes. */
size_t query_field_find(const struct query_field *fields, size_t n_fields, const char *name, size_t len);
/** The field that is meant, perhaps, where there is none of that name; or QUERY_NO_FIELD. */
size_t query_field_closest(const struct query_field *fields, size_t n_fields, const char *name, size_t len);
/** Appends `did you mean "func"? fields are func, module, size`, the question only when a field is close. */
void query_field_suggest(const struct query_field *fields, size_t n_fields, const char *name, size_t len,
                         struct buf *out);

#endif
