/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_OF_A_FILE 120

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

struct text_style terminal_style(FILE *stream)
{
    struct text_style style = {.file = true, .columns = COLUMNS_OF_A_FILE, .utf8 = speaks_utf8()};
    struct winsize size;
    const char *plain = getenv("NO_COLOR"), *term = getenv("TERM");
    if (!isatty(fileno(stream)))
        return style;
    style.file = false;
    if (!ioctl(fileno(stream), TIOCGWINSZ, &size) && size.ws_col >= 40)
        style.columns = size.ws_col;
    style.colour = !(plain && *plain) && term && strcmp(term, "dumb");
    return style;
}
