/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_TABLE_VIEW_H
#define VIEW_TABLE_VIEW_H

/*
 * A table as aligned columns in human units, or as JSON. See allium-json(5).
 *
 * Runs in: the tool. Threads: pure, but for the time zone. Owns: nothing.
 */

#include "model/table.h"
#include "view/sink.h"
#include "view/text.h"

/** What is not known is "-". The last column of text gives way when there is no room. */
void table_view_text(struct sink *out, const struct table *t, const struct text_style *style);
/** {"schema":"allium-NAME","version":N,"rows":[{...}]} */
void table_view_json(struct sink *out, const struct table *t);

#endif
