/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/table/sql_result.h"

#include <stdbool.h>

#include "base/buf.h"

static bool is_taken(const struct answer *a, const char *name)
{
    vec_each (char *, other, &a->columns)
        if (!strcmp(*other, name))
            return true;
    return false;
}

void answer_column(struct answer *a, const char *name)
{
    struct buf unique = BUF_INIT;
    buf_addstr(&unique, name);
    for (unsigned n = 2; is_taken(a, buf_str(&unique)); n++) {
        buf_reset(&unique);
        buf_printf(&unique, "%s_%u", name, n);
    }
    *vec_push(&a->columns) = buf_detach(&unique);
}

void answer_clear(struct answer *a)
{
    vec_each (struct answer_value, v, &a->values)
        free(v->text);
    a->values.len = 0;
}

void answer_release(struct answer *a)
{
    answer_clear(a);
    vec_each (char *, name, &a->columns)
        free(*name);
    vec_release(&a->columns);
    vec_release(&a->values);
}
