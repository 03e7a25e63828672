/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_TEXT_H
#define VIEW_TEXT_H

/*
 * Text for a terminal: width, character set, colours; names with any contents made harmless; figures with
 * their intervals; paragraphs. For the views that people read.
 *
 * Runs in: the tool. Threads: pure, but for the time zone (localtime_r). Owns: nothing.
 * Invariant: no byte of a name reaches the terminal as a control character or as broken UTF-8.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/profile/estimate.h"
#include "view/text/sink.h"

struct column_choice; /* view/text/column_choice.h */

struct text_style {
    bool file;        /* the output is not a screen: names of rows stay whole */
    unsigned columns; /* width of the terminal; 0: no limit, nothing is shortened */
    bool utf8;        /* else ASCII only */
    bool colour;      /* escape sequences */
    bool exact;       /* numbers of tables whole: 2,621 in place of 2.62k */
    /* which columns are shown; NULL: all; a table that has none of them is shown as it is */
    struct column_choice *only;
};

enum text_look { TEXT_PLAIN, TEXT_STRONG, TEXT_FAINT, TEXT_ALARM };

enum text_unit { TEXT_BYTES, TEXT_COUNT };

/** Return the escape sequences before and after a text of that look; "" without colour. */
const char *text_begin(const struct text_style *s, enum text_look look);
const char *text_end(const struct text_style *s, enum text_look look);

/** Return "–" or "-"; "…" or "...". */
const char *text_dash(const struct text_style *s);
const char *text_dots(const struct text_style *s);
/** Returns "→" or "->". */
const char *text_arrow(const struct text_style *s);
/** Returns the mark before a lower bound: "≥ " or ">= ". */
const char *text_at_least(const struct text_style *s);

/** Returns the length of the well-formed UTF-8 sequence at `text`, 0 when there is none (RFC 3629; not at the
 * NUL). */
size_t text_sequence(const char *text);
/**
 * Appends a name from outside. Bytes that could move the cursor, are not UTF-8, or are not ASCII if ASCII is
 * required, become "?".
 */
void text_add_name(struct buf *b, const struct text_style *s, const char *name);
/** Returns how many columns a text of well-formed UTF-8 takes, one for each character. */
size_t text_width(const char *text);
/** Appends the text. If it is wider than `width` columns, dots replace its middle, or the beginning of a
 * path. */
void text_add_short(struct buf *b, const struct text_style *s, const char *text, size_t width);

/** From now on the functions below write whole numbers, as struct text_style asks of tables: "12,897,485 B". */
void text_numbers_whole(bool whole);
/** From now on figures under 100 bytes or objects have three digits, too, "0.125 B": of means and rates. */
void text_numbers_fractions(bool wanted);
/** Appends "12.3 MiB"; "< 1.84 MiB" if nothing was sampled of what may exist. */
void text_add_value(struct buf *b, const struct estimate *e, enum text_unit unit);
/** Appends "11.8–12.9", in the unit of the value; nothing if the value is exact or nothing was sampled. */
void text_add_interval(struct buf *b, const struct text_style *s, const struct estimate *e,
                       enum text_unit unit);
/** Appends both: "12.3 MiB (11.8–12.9)". */
void text_add_figure(struct buf *b, const struct text_style *s, const struct estimate *e,
                     enum text_unit unit);
/** Appends a change: "+12.3 MiB", "-3.10 KiB", "0 B". */
void text_add_change(struct buf *b, double change, enum text_unit unit);
/**
 * Appends "+8.10 to +16.9 MiB", "-1.20k to +3.40k", both in the unit of the larger one; nothing if the two
 * are equal.
 */
void text_add_change_interval(struct buf *b, double low, double high, enum text_unit unit);
/** Appends "34 %", "0.3 %", "< 0.1 %"; nothing when the whole is 0. */
void text_add_share(struct buf *b, double part, double whole);
/** Appends "1 sample", "12,345 samples": the plural is the noun with an s. NULL: only the number. */
void text_add_number(struct buf *b, uint64_t number, const char *noun);
/**
 * Appends a number and words in singular or plural. The words "{free|frees} of NULL" give "12,345 frees of
 * NULL"; "{s}" is short for "{|s}": "free{s} of NULL".
 */
void text_add_words(struct buf *b, uint64_t number, const char *words);
/** Appends the value before a change, and the change in percent of it: ", +70.0 % of 20", or " on top of 0". */
void text_add_base(struct buf *b, double change, const struct estimate *before, enum text_unit unit);
/** Appends "--- 5.00 s after the start, the last 5.00 s: ", the beginning of one of several reports. */
void text_add_when(struct buf *b, uint64_t began_ns, uint64_t elapsed_ns);
/** Returns the number of bytes of the first `characters` of a text. */
size_t text_bytes(const char *text, size_t characters);
/** Appends "A, B, C", or "A, B and 3 more" if that is wider than `width` columns. */
void text_add_names(struct buf *b, const char *const *names, size_t n, size_t width);
/** Appends "20 of 45 rows", or "45 rows" if all are shown. */
void text_add_shown(struct buf *b, uint64_t shown, uint64_t all);
/**
 * Returns false for times that are not valid: 0, as of a clock before 1970, and the largest time of a
 * recording or more.
 */
bool text_instant_known(uint64_t realtime_ns);
/** Appends "2026-11-21 14:02:11 UTC", in the zone of TZ, or "unknown time". */
void text_add_instant(struct buf *b, uint64_t realtime_ns);
/** Appends "14:02:11", or "unknown time". */
void text_add_clock(struct buf *b, uint64_t realtime_ns);
/** Appends "14:02:11.083", or "unknown time". */
void text_add_moment(struct buf *b, uint64_t realtime_ns);

/** Writes words, broken into lines that begin at column `indent`; the label stands before the first one. */
void text_paragraph(struct sink *out, const struct text_style *s, const char *label, unsigned indent,
                    const char *words);

#endif
