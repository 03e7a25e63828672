/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/screen_options.h"

#include <string.h>

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

int screen_options_check(int code)
{
    const char *missing = column_choice_missing(&choice.only);
    struct buf b = BUF_INIT;
    if (!missing || code == EXIT_USAGE)
        return code;
    buf_printf(&b, "--columns: no table has a column '%s'; there is ", missing);
    text_add_names(&b, (const char *const *)choice.only.headings.at, choice.only.headings.len,
                   HEADINGS_WIDTH);
    command_fail(code, "%s", buf_str(&b));
    buf_release(&b);
    return code == EXIT_DONE ? EXIT_USAGE : code;
}
