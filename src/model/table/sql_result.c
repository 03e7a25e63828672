/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/table/sql_result.h"

#include <stdbool.h>

#include "base/buf.h"

static bool is_taken(const struct sql_result *a, const char *name)
{
    vec_each (char *, other, &a->columns)
        if (!strcmp(*other, name))
            return true;
    return false;
}

void sql_result_column(struct sql_result *a, const char *name)
{
    struct buf unique = BUF_INIT;
    buf_addstr(&unique, name);
    for (unsigned n = 2; is_taken(a, buf_str(&unique)); n++) {
        buf_reset(&unique);
        buf_printf(&unique, "%s_%u", name, n);
    }
    *vec_push(&a->columns) = buf_detach(&unique);
}

void sql_result_clear(struct sql_result *a)
{
    vec_each (struct sql_result_value, v, &a->values)
        free(v->text);
    a->values.len = 0;
}

void sql_result_release(struct sql_result *a)
{
    sql_result_clear(a);
    vec_each (char *, name, &a->columns)
        free(*name);
    vec_release(&a->columns);
    vec_release(&a->values);
}
