/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "view/text/text.h"

#define LINES_TO 2 /* values up to this depth begin a line: a row of a list is one line */

static void put_string(struct sink *out, const char *text)
{
    sink_char(out, '"');
    while (*text) {
        unsigned char c = (unsigned char)*text;
        size_t len = text_sequence(text);
        if (!len)
            sink_printf(out, "\\\\x%02x", c);
        else if (c == '"' || c == '\\')
            sink_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            sink_printf(out, "\\u%04x", c);
        else
            sink_write(out, text, len);
        text += len ? len : 1;
    }
    sink_char(out, '"');
}

static void begin(struct json *j, const char *key)
{
    if (j->more)
        sink_char(j->out, ',');
    if (j->depth && j->depth <= LINES_TO && !j->line)
        sink_char(j->out, '\n');
    if (key) {
        put_string(j->out, key);
        sink_char(j->out, ':');
    }
    j->more = true;
}

void json_open(struct json *j, const char *key, char bracket)
{
    begin(j, key);
    sink_char(j->out, bracket);
    j->depth++;
    j->more = false;
}

void json_close(struct json *j, char bracket)
{
    if (j->more && j->depth <= LINES_TO && !j->line)
        sink_char(j->out, '\n');
    sink_char(j->out, bracket);
    j->more = true;
    if (!--j->depth)
        sink_char(j->out, '\n');
}

void json_text(struct json *j, const char *key, const char *text)
{
    if (!text) {
        json_null(j, key);
        return;
    }
    begin(j, key);
    put_string(j->out, text);
}

void json_whole(struct json *j, const char *key, uint64_t value)
{
    begin(j, key);
    sink_printf(j->out, "%" PRIu64, value);
}

void json_instant(struct json *j, const char *key, uint64_t realtime_ns)
{
    if (text_instant_known(realtime_ns))
        json_whole(j, key, realtime_ns);
    else
        json_null(j, key);
}

void json_signed(struct json *j, const char *key, int64_t value)
{
    begin(j, key);
    sink_printf(j->out, "%" PRId64, value);
}

void json_real(struct json *j, const char *key, double value)
{
    char digits[40];
    if (!isfinite(value)) {
        json_null(j, key);
        return;
    }
    snprintf(digits, sizeof(digits), "%.15g", value);
    char *comma = strchr(digits, ','); /* the decimal comma of some locales */
    if (comma)
        *comma = '.';
    begin(j, key);
    sink_text(j->out, digits);
}

void json_flag(struct json *j, const char *key, bool value)
{
    begin(j, key);
    sink_text(j->out, value ? "true" : "false");
}

void json_hex(struct json *j, const char *key, uint64_t value)
{
    begin(j, key);
    sink_printf(j->out, "\"0x%" PRIx64 "\"", value);
}

void json_null(struct json *j, const char *key)
{
    begin(j, key);
    sink_text(j->out, "null");
}

void json_rounded(struct json *j, const char *key, double value)
{
    if (!isfinite(value)) {
        json_null(j, key);
        return;
    }
    double whole = round(value);
    begin(j, key);
    sink_printf(j->out, "%.0f", whole == 0 ? 0.0 : whole); /* -0 becomes 0 */
}

void json_estimate(struct json *j, const char *key, const struct estimate *e)
{
    struct interval i = e ? estimate_interval(e) : (struct interval){NAN, NAN};
    char name[64];
    json_rounded(j, key, e ? e->value : NAN);
    snprintf(name, sizeof(name), "%s_low", key);
    json_rounded(j, name, floor(i.low));
    snprintf(name, sizeof(name), "%s_high", key);
    json_rounded(j, name, ceil(i.high));
}
