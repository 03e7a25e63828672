/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/text/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/units.h"
#include "model/profile/rollup.h"

#define COLUMNS_OF_A_FILE 120 /* of paragraphs: a row of a table takes what it needs */

const char *text_begin(const struct text_style *s, enum text_look look)
{
    static const char *const sequences[] = {"", "\033[1m", "\033[2m", "\033[33m"};
    return s->colour ? sequences[look] : "";
}

const char *text_end(const struct text_style *s, enum text_look look)
{
    return s->colour && look != TEXT_PLAIN ? "\033[0m" : "";
}

const char *text_dash(const struct text_style *s)
{
    return s->utf8 ? "–" : "-";
}

const char *text_dots(const struct text_style *s)
{
    return s->utf8 ? "…" : "...";
}

const char *text_arrow(const struct text_style *s)
{
    return s->utf8 ? "→" : "->";
}

const char *text_at_least(const struct text_style *s)
{
    return s->utf8 ? "≥ " : ">= ";
}

/* ---- names ---- */

size_t text_sequence(const char *text)
{
    const unsigned char *t = (const unsigned char *)text;
    size_t len = t[0] < 0x80 ? 1 : t[0] < 0xc2 ? 0 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : t[0] < 0xf5 ? 4 : 0;
    if (!t[0])
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((t[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (t[0] == 0xe0 && t[1] < 0xa0) || (t[0] == 0xf0 && t[1] < 0x90);
    bool surrogate = t[0] == 0xed && t[1] >= 0xa0, beyond = t[0] == 0xf4 && t[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : len;
}

/*
 * Returns false for control characters, and for characters that change the direction of writing or are invisible:
 * U+0080-9F, U+200B-200F, U+2028-202E, U+2060-206F, U+FEFF.
 */
static bool is_printable(const unsigned char *t, size_t len)
{
    if (len == 1)
        return t[0] >= 0x20 && t[0] != 0x7f;
    if (len == 2)
        return !(t[0] == 0xc2 && t[1] < 0xa0);
    if (len == 3 && t[0] == 0xe2 && t[1] == 0x80)
        return !((t[2] >= 0x8b && t[2] <= 0x8f) || (t[2] >= 0xa8 && t[2] <= 0xae));
    if (len == 3 && t[0] == 0xe2 && t[1] == 0x81)
        return !(t[2] >= 0xa0 && t[2] <= 0xaf);
    return !(len == 3 && t[0] == 0xef && t[1] == 0xbb && t[2] == 0xbf);
}

void text_add_name(struct buf *b, const struct text_style *s, const char *name)
{
    while (*name) {
        size_t len = text_sequence(name);
        bool good = len && is_printable((const unsigned char *)name, len) && (len == 1 || s->utf8);
        if (good)
            buf_add(b, name, len);
        else
            buf_addch(b, '?');
        name += len ? len : 1;
    }
}

size_t text_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

size_t text_bytes(const char *text, size_t characters)
{
    const char *at = text;
    while (*at && characters--)
        for (at++; (*at & 0xc0) == 0x80;)
            at++;
    return (size_t)(at - text);
}

void text_add_short(struct buf *b, const struct text_style *s, const char *text, size_t width)
{
    const char *dots = text_dots(s);
    size_t all = text_width(text), less = text_width(dots);
    if (all <= width || width < less + 2) {
        buf_add(b, text, text_bytes(text, all <= width ? all : width));
        return;
    }
    bool path = *text == '/' && !strchr(text, ' ');
    size_t head = path ? 0 : (width - less + 1) / 2, tail = width - less - head;
    buf_add(b, text, text_bytes(text, head));
    buf_addstr(b, dots);
    buf_addstr(b, text + text_bytes(text, all - tail));
}

/* ---- figures ---- */

struct scale {
    double one;
    const char *name;
};

static bool whole_numbers, fractions;

void text_numbers_whole(bool whole)
{
    whole_numbers = whole;
}

void text_numbers_fractions(bool wanted)
{
    fractions = wanted;
}

/* Returns the unit in which base/units.h writes a value. */
static struct scale scale_of(double value, enum text_unit unit)
{
    static const char *const sizes[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    static const char *const counts[] = {"", "k", "M", "G", "T", "P"};
    bool bytes = unit == TEXT_BYTES;
    size_t last = (bytes ? sizeof(sizes) / sizeof(*sizes) : sizeof(counts) / sizeof(*counts)) - 1, i = 0;
    double base = bytes ? 1024 : 1000, one = 1;
    if (whole_numbers)
        return (struct scale){one, bytes ? sizes[0] : counts[0]};
    for (; value / one >= base - 0.5 && i < last; i++)
        one *= base;
    return (struct scale){one, bytes ? sizes[i] : counts[i]};
}

/* Appends three significant digits in this unit; single bytes and objects without decimals. */
static void add_scaled(struct buf *b, double value, struct scale scale)
{
    double shown = value / scale.one;
    if (fractions && (whole_numbers || (scale.one <= 1 && shown < 99.95))) {
        buf_printf(b, whole_numbers ? "%.10g" : "%.3g", shown);
        return;
    }
    if (whole_numbers) {
        text_add_number(b, (uint64_t)(shown > 0 ? shown + 0.5 : 0), NULL);
        return;
    }
    int decimals = scale.one <= 1 || shown >= 99.95 ? 0 : shown >= 9.995 ? 1 : 2;
    buf_printf(b, "%.*f", decimals, shown);
}

void text_add_value(struct buf *b, const struct estimate *e, enum text_unit unit)
{
    double value = e->value;
    if (!e->samples && !rollup_exact(e)) {
        value = estimate_interval(e).high;
        buf_addstr(b, "< ");
    }
    struct scale scale = scale_of(value, unit);
    add_scaled(b, value, scale);
    buf_addstr(b, scale.name);
}

void text_add_interval(struct buf *b, const struct text_style *s, const struct estimate *e,
                       enum text_unit unit)
{
    if (!e->samples || rollup_exact(e))
        return;
    struct interval i = estimate_interval(e);
    struct scale scale = scale_of(e->value, unit), high = scale_of(i.high, unit);
    add_scaled(b, i.low, scale);
    buf_addstr(b, text_dash(s));
    bool far = i.high / scale.one >= 9999.5;
    add_scaled(b, i.high, far ? high : scale);
    if (far)
        buf_addstr(b, high.name);
}

void text_add_figure(struct buf *b, const struct text_style *s, const struct estimate *e, enum text_unit unit)
{
    text_add_value(b, e, unit);
    if (!e->samples || rollup_exact(e))
        return;
    buf_addstr(b, " (");
    text_add_interval(b, s, e, unit);
    buf_addch(b, ')');
}

static void add_signed(struct buf *b, double change, struct scale scale)
{
    buf_addstr(b, change > 0 ? "+" : change < 0 ? "-" : "0");
    if (change != 0)
        add_scaled(b, fabs(change), scale);
}

void text_add_change(struct buf *b, double change, enum text_unit unit)
{
    struct scale scale = scale_of(fabs(change), unit);
    add_signed(b, change, scale);
    buf_addstr(b, scale.name);
}

void text_add_change_interval(struct buf *b, double low, double high, enum text_unit unit)
{
    struct scale scale = scale_of(fmax(fabs(low), fabs(high)), unit);
    if (low == high)
        return;
    add_signed(b, low, scale);
    buf_printf(b, "%s to ", unit == TEXT_COUNT ? scale.name : "");
    add_signed(b, high, scale);
    buf_addstr(b, scale.name);
}

void text_add_share(struct buf *b, double part, double whole)
{
    double share = 100 * part / whole;
    if (!(whole > 0))
        return;
    if (part > 0 && share < 0.1)
        buf_addstr(b, "< 0.1 %");
    else
        buf_printf(b, "%.*f %%", part > 0 && share < 9.95 ? 1 : 0, share);
}

void text_add_number(struct buf *b, uint64_t number, const char *noun)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    for (int i = 0; i < len; i++) {
        buf_addch(b, digits[i]);
        if (i + 1 < len && (len - i - 1) % 3 == 0)
            buf_addch(b, ',');
    }
    if (noun)
        buf_printf(b, " %s%s", noun, number == 1 ? "" : "s");
}

/* Appends the singular or the plural of a choice in braces, `len` characters, for this number. */
static void add_choice(struct buf *b, uint64_t number, const char *choice, size_t len)
{
    const char *bar = memchr(choice, '|', len);
    size_t first = bar ? (size_t)(bar - choice) : 0;
    if (number == 1)
        buf_add(b, choice, first);
    else if (bar)
        buf_add(b, bar + 1, len - first - 1);
    else
        buf_add(b, choice, len);
}

void text_add_words(struct buf *b, uint64_t number, const char *words)
{
    text_add_number(b, number, NULL);
    buf_addch(b, ' ');
    while (*words) {
        size_t plain = strcspn(words, "{");
        buf_add(b, words, plain);
        words += plain;
        size_t len = strcspn(words, "}");
        if (!words[0] || !words[len])
            break;
        add_choice(b, number, words + 1, len - 1);
        words += len + 1;
    }
}

static void add_time(struct buf *b, uint64_t realtime_ns, const char *format)
{
    time_t seconds = (time_t)(realtime_ns / 1000000000);
    struct tm tm;
    char text[64];
    if (text_instant_known(realtime_ns) && localtime_r(&seconds, &tm) &&
        strftime(text, sizeof(text), format, &tm))
        buf_addstr(b, text);
    else
        buf_addstr(b, "unknown time");
}

bool text_instant_known(uint64_t realtime_ns)
{
    return realtime_ns && realtime_ns < INT64_MAX;
}

void text_add_instant(struct buf *b, uint64_t realtime_ns)
{
    add_time(b, realtime_ns, "%Y-%m-%d %H:%M:%S %Z");
}

void text_add_clock(struct buf *b, uint64_t realtime_ns)
{
    add_time(b, realtime_ns, "%H:%M:%S");
}

void text_add_moment(struct buf *b, uint64_t realtime_ns)
{
    text_add_clock(b, realtime_ns);
    if (text_instant_known(realtime_ns))
        buf_printf(b, ".%03u", (unsigned)(realtime_ns / 1000000 % 1000));
}

/* ---- paragraphs ---- */

/* Returns the length of the next word in bytes; a figure and its unit are one word. */
static size_t word_bytes(const char *words)
{
    static const char *const units[] = {"%", "B", "KiB", "MiB", "GiB", "TiB", "ns", "us", "ms", "s"};
    size_t len = strcspn(words, " ");
    if (!len || !words[len] || words[len - 1] < '0' || words[len - 1] > '9')
        return len;
    size_t next = strcspn(words + len + 1, " .,;)");
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (next == strlen(units[i]) && !strncmp(words + len + 1, units[i], next))
            return len + 1 + strcspn(words + len + 1, " ");
    return len;
}

void text_add_base(struct buf *b, double change, const struct estimate *before, enum text_unit unit)
{
    if (before->value > 0)
        buf_printf(b, ", %+.1f %% of ", 100 * change / before->value);
    else
        buf_addstr(b, " on top of ");
    text_add_value(b, before, unit);
}

void text_paragraph(struct sink *out, const struct text_style *s, const char *label, unsigned indent,
                    const char *words)
{
    size_t column = text_width(label), room = s->columns || !s->file ? s->columns : COLUMNS_OF_A_FILE;
    bool begun = false; /* the line has a word already */
    sink_text(out, label);
    while (*words) {
        size_t len = word_bytes(words);
        char *word = mem_strndup(words, len);
        size_t width = text_width(word);
        if (begun && room && column + 1 + width > room) {
            sink_char(out, '\n');
            column = 0;
            begun = false;
        }
        size_t blanks = begun ? 1 : indent > column ? indent - column : 0;
        sink_repeat(out, ' ', blanks);
        sink_text(out, word);
        column += blanks + width;
        begun = true;
        free(word);
        words += len;
        words += strspn(words, " ");
    }
    sink_char(out, '\n');
}

void text_add_when(struct buf *b, uint64_t began_ns, uint64_t elapsed_ns)
{
    char took[UNITS_TEXT_BYTES], last[UNITS_TEXT_BYTES];
    buf_printf(b, "--- %s after the start, the last %s: ", units_format_duration(took, (double)began_ns),
               units_format_duration(last, (double)elapsed_ns));
}

void text_add_names(struct buf *b, const char *const *names, size_t n, size_t width)
{
    const size_t rest = strlen(" and 99 more"), begun = b->len;
    for (size_t i = 0; i < n; i++) {
        size_t used = b->len - begun + text_width(names[i]) + 2, room = i + 1 < n ? rest : 0;
        if (i && used + room > width) {
            buf_printf(b, " and %zu more", n - i);
            return;
        }
        buf_printf(b, "%s%s", i ? ", " : "", names[i]);
    }
}

void text_add_shown(struct buf *b, uint64_t shown, uint64_t all)
{
    if (shown < all) {
        text_add_number(b, shown, NULL);
        buf_addstr(b, " of ");
    }
    text_add_number(b, all, "row");
}
