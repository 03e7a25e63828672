/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/allocinfo_text.h"

#include <inttypes.h>
#include <string.h>

/* Longest part of a name that is written. With it, the whole line fits into the line buffer of readers. */
#define FILE_BYTES 3000u
#define NAME_BYTES 500u

void allocinfo_write_head(struct sink *out)
{
    sink_text(out, "allocinfo - version: 2.0\n#     <size>  <calls> <tag info>\n");
}

/*
 * Returns whether the text at `at` would end the line, the word or the name; " func:" would end the name of a file.
 */
static bool breaks(const char *at, char closing)
{
    unsigned char c = (unsigned char)*at;
    return c < ' ' || c == 0x7f || (closing && c == (unsigned char)closing) ||
           (c == ' ' && !strncmp(at + 1, "func:", 5));
}

static void write_name(struct sink *out, const char *name, char closing, size_t most)
{
    char text[FILE_BYTES];
    size_t len = 0;
    for (; name && name[len] && len < most; len++)
        text[len] = breaks(name + len, closing) ? '?' : name[len];
    if (len && text[len - 1] == ' ') /* readers ignore a blank at the end of the line */
        text[len - 1] = '?';
    sink_write(out, len ? text : "?", len ? len : 1);
}

void allocinfo_write_row(struct sink *out, const struct allocinfo_row *row)
{
    sink_printf(out, "%12" PRIi64 " %8" PRIu64 " ", row->bytes, row->calls);
    write_name(out, row->file, '\0', FILE_BYTES);
    sink_printf(out, ":%" PRIu32 " ", row->line);
    if (row->module) {
        sink_char(out, '[');
        write_name(out, row->module, '[', NAME_BYTES);
        sink_text(out, "] ");
    }
    sink_text(out, "func:");
    write_name(out, row->function, '\0', NAME_BYTES);
    sink_text(out, row->accurate ? " \n" : " accurate:no \n");
}
