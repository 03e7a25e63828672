/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_SQL_RESULT_VIEW_H
#define VIEW_SQL_RESULT_VIEW_H

/*
 * The rows of an SQL result as aligned columns, JSON or CSV. Rows come in batches, and lines once written are
 * final.
 */

#include "model/table/sql_result.h"
#include "view/formats/json.h"
#include "view/text/text.h"

enum sql_result_form { SQL_RESULT_AS_TEXT, SQL_RESULT_AS_JSON, SQL_RESULT_AS_CSV };

struct sql_result_view {
    struct sink *out;
    struct text_style style;
    enum sql_result_form form;
    struct json json;
    bool begun;
};

/**
 * Writes a batch of rows; `more`: others may follow. As text, columns are as wide as the batch needs, numbers
 * to the right; NULL is "-". As JSON, {"schema":"allium-sql","version":1,"rows":[{...}]}; only a batch
 * without `more` ends it, so that half a result is not valid JSON. As CSV (RFC 4180), NULL is an empty field.
 * Bytes are X'6869', in JSON "6869".
 */
void sql_result_view_write(struct sql_result_view *v, const struct sql_result *a, bool more);

#endif
