/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/screen_options.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "query/field.h"
#include "view/text/column_choice.h"

#define HEADINGS_WIDTH 200 /* of the list of existing columns in the message */

static struct {
    struct column_choice only; /* no names: all columns */
    bool wide, exact;
} choice;

int screen_options_read(const struct command *c, const struct arguments *a)
{
    static const char *const options[] = {"columns", "wide", "exact"};
    static const char *const formats[] = {"json", "csv", "allocinfo", "openmetrics", "folded"};
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        for (size_t j = 0; j < sizeof(formats) / sizeof(*formats); j++)
            if (!c->own_columns && command_value(c, a, options[i]) && command_value(c, a, formats[j]))
                return command_misuse(c, "--%s prints everything: leave out --%s", formats[j], options[i]);
    const char *names = c->own_columns ? NULL : command_value(c, a, "columns");
    if (names)
        column_choice_add(&choice.only, names);
    if (names && !choice.only.names.len)
        return command_misuse(c, "--columns needs names of columns, with commas between them");
    choice.wide = command_value(c, a, "wide") != NULL;
    choice.exact = command_value(c, a, "exact") != NULL;
    text_numbers_whole(choice.exact);
    return -1;
}

void screen_options_apply(struct text_style *style)
{
    style->columns = choice.wide ? 0 : style->columns;
    style->exact = choice.exact;
    style->only = choice.only.names.len ? &choice.only : NULL;
}

/* Returns the heading that may be meant; NULL: none is similar. */
static const char *closest_heading(const char *name)
{
    struct VEC(struct query_field) names = {0};
    struct buf upper = BUF_INIT; /* as headings are */
    for (; *name; name++)
        buf_addch(&upper, (char)toupper((unsigned char)*name));
    vec_each (char *, heading, &choice.only.headings)
        *vec_push(&names) = (struct query_field){.name = *heading};
    size_t meant = query_field_closest(names.at, names.len, buf_str(&upper), upper.len);
    const char *heading = meant == QUERY_NO_FIELD ? NULL : names.at[meant].name;
    vec_release(&names);
    buf_release(&upper);
    return heading;
}

int screen_options_check(int code)
{
    const char *missing = column_choice_missing(&choice.only);
    struct buf b = BUF_INIT;
    if (!missing || code == EXIT_USAGE)
        return code;
    const char *meant = closest_heading(missing);
    buf_printf(&b, "--columns: no table has a column '%s'; ", missing);
    if (meant)
        buf_printf(&b, "did you mean %s? ", meant);
    buf_addstr(&b, meant ? "There is " : "there is ");
    text_add_names(&b, (const char *const *)choice.only.headings.at, choice.only.headings.len,
                   HEADINGS_WIDTH);
    command_fail(code, "%s", buf_str(&b));
    buf_release(&b);
    return code == EXIT_DONE ? EXIT_USAGE : code;
}
