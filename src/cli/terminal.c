/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/terminal.h"

#include "cli/screen_options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_LEAST   40
#define COLUMNS_DEFAULT 80
#define ROWS_DEFAULT    24

/* By the variables that decide it: the locale itself stays "C", in which numbers are read and written. */
static bool speaks_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

/* In a file nothing is cut, unless the user asks for a width. */
static unsigned columns_of_file(void)
{
    const char *value = getenv("COLUMNS");
    long columns = value ? strtol(value, NULL, 10) : 0;
    return columns >= COLUMNS_LEAST && columns <= UINT16_MAX ? (unsigned)columns : 0;
}

unsigned terminal_rows(FILE *stream)
{
    struct winsize size;
    if (!isatty(fileno(stream)))
        return 0;
    return !ioctl(fileno(stream), TIOCGWINSZ, &size) && size.ws_row ? size.ws_row : ROWS_DEFAULT;
}

struct text_style terminal_style(FILE *stream)
{
    struct text_style style = {.file = true, .columns = columns_of_file(), .utf8 = speaks_utf8()};
    struct winsize size;
    const char *plain = getenv("NO_COLOR"), *term = getenv("TERM");
    screen_options_apply(&style);
    if (!isatty(fileno(stream)))
        return style;
    style.file = false;
    style.columns = COLUMNS_DEFAULT;
    if (!ioctl(fileno(stream), TIOCGWINSZ, &size) && size.ws_col >= COLUMNS_LEAST)
        style.columns = size.ws_col;
    style.colour = !(plain && *plain) && term && strcmp(term, "dumb");
    screen_options_apply(&style);
    return style;
}
