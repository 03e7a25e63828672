/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Parses a plain decimal number, without sign, exponent, hex or "inf". Returns its end; NULL: there is no number. */
static const char *scan_number(const char *text, double *value)
{
    size_t len = strspn(text, "0123456789.");
    if (!len || (len == 1 && *text == '.') || len > 40)
        return NULL;
    char digits[48];
    memcpy(digits, text, len);
    digits[len] = '\0';
    char *end;
    *value = strtod(digits, &end);
    return *end ? NULL : text + len;
}

int units_parse_size(const char *text, uint64_t *bytes)
{
    static const char letters[] = "kmgtpe";
    double value;
    const char *p = scan_number(text, &value);
    if (!p)
        return -EINVAL;
    if (*p == ' ')
        p++;
    const char *letter = *p ? strchr(letters, *p | 0x20) : NULL;
    if (letter) {
        value = ldexp(value, 10 * (int)(letter - letters + 1));
        p++;
        if (*p == 'i')
            p++;
    }
    if (*p == 'B' || *p == 'b')
        p++;
    if (*p)
        return -EINVAL;
    if (value >= 0x1p63)
        return -ERANGE;
    *bytes = (uint64_t)value;
    return 0;
}

int units_parse_duration(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
    double total = 0;
    if (!*text)
        return -EINVAL;
    while (*text) {
        double value;
        const char *p = scan_number(text, &value);
        if (!p)
            return -EINVAL;
        size_t len = strspn(p, "nusmhd");
        double scale = 0;
        if (!len && !*p)
            scale = 1e9;
        for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
            if (strlen(units[i].name) == len && !strncmp(units[i].name, p, len))
                scale = units[i].ns;
        if (scale == 0)
            return -EINVAL;
        total += value * scale;
        text = p + len;
    }
    if (total >= 0x1p63)
        return -ERANGE;
    *ns = (uint64_t)total;
    return 0;
}

/* Formats three significant digits; no decimals if the value is nearly an integer. */
static void format_three(char out[static UNITS_TEXT_BYTES], double value, const char *sep, const char *unit)
{
    int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    if (fabs(value - round(value)) < 0.0005 * value)
        decimals = 0;
    snprintf(out, UNITS_TEXT_BYTES, "%.*f%s%s", decimals, value, sep, unit);
}

char *units_format_size(char out[static UNITS_TEXT_BYTES], double bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t i = 0;
    while (bytes >= 1023.5 && i + 1 < sizeof(names) / sizeof(*names)) {
        bytes /= 1024;
        i++;
    }
    if (i == 0)
        snprintf(out, UNITS_TEXT_BYTES, "%.0f B", bytes);
    else
        format_three(out, bytes, " ", names[i]);
    return out;
}

char *units_format_count(char out[static UNITS_TEXT_BYTES], double count)
{
    static const char *const names[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    while (count >= 999.5 && i + 1 < sizeof(names) / sizeof(*names)) {
        count /= 1000;
        i++;
    }
    if (i == 0)
        snprintf(out, UNITS_TEXT_BYTES, "%.0f", count);
    else
        format_three(out, count, "", names[i]);
    return out;
}

char *units_format_duration(char out[static UNITS_TEXT_BYTES], double ns)
{
    double s = ns / 1e9;
    if (ns < 999.5)
        snprintf(out, UNITS_TEXT_BYTES, "%.0f ns", ns);
    else if (ns < 999.5e3)
        format_three(out, ns / 1e3, " ", "us");
    else if (ns < 999.5e6)
        format_three(out, ns / 1e6, " ", "ms");
    else if (s < 99.95)
        format_three(out, s, " ", "s");
    else if (s < 3600)
        snprintf(out, UNITS_TEXT_BYTES, "%dm%02ds", (int)s / 60, (int)s % 60);
    else if (s < 86400)
        snprintf(out, UNITS_TEXT_BYTES, "%dh%02dm", (int)s / 3600, (int)s / 60 % 60);
    else
        snprintf(out, UNITS_TEXT_BYTES, "%.0fd%02dh", floor(s / 86400), (int)(fmod(s, 86400) / 3600));
    return out;
}
