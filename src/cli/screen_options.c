/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/screen_options.h"

#include <string.h>

static struct {
    struct text_only only; /* names: NULL: all columns */
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
    if (names && !names[strspn(names, ", ")])
        return command_misuse(c, "--columns needs names of columns, with commas between them");
    choice.only.names = names;
    choice.wide = command_value(c, a, "wide") != NULL;
    choice.exact = command_value(c, a, "exact") != NULL;
    text_numbers_whole(choice.exact);
    return -1;
}

void screen_options_apply(struct text_style *style)
{
    style->columns = choice.wide ? 0 : style->columns;
    style->exact = choice.exact;
    style->only = choice.only.names ? &choice.only : NULL;
}

int screen_options_check(int code)
{
    const char *name = choice.only.names;
    if (!name || !choice.only.tables || code == EXIT_USAGE)
        return code;
    for (int i = 0; *name;
         i++, name += name[strcspn(name, ",")] ? strcspn(name, ",") + 1 : strcspn(name, ",")) {
        const int len = (int)strcspn(name, ",");
        if (len && !(choice.only.found >> (i & 63) & 1))
            return command_fail(EXIT_USAGE, "--columns: no table has a column '%.*s'; there is %s", len, name,
                                buf_str(&choice.only.headings));
    }
    return code;
}
