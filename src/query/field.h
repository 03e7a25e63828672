/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_FIELD_H
#define QUERY_FIELD_H

/*
 * Field names: the search for a field, and the hint when there is none. For src/query, and for other names
 * that people type.
 */

#include "base/buf.h"
#include "query/query.h"

#define QUERY_NO_FIELD SIZE_MAX

/** Returns the index of the field, or QUERY_NO_FIELD. The name has `len` bytes. */
size_t query_field_find(const struct query_field *fields, size_t n_fields, const char *name, size_t len);
/** Returns the field with the most similar name, for a name that does not exist; or QUERY_NO_FIELD. */
size_t query_field_closest(const struct query_field *fields, size_t n_fields, const char *name, size_t len);
/** Appends `did you mean "func"? fields are func, module, size`; the question only when there is a similar
 * field. */
void query_field_suggest(const struct query_field *fields, size_t n_fields, const char *name, size_t len,
                         struct buf *out);

#endif
