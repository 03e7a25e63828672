/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_JSON_H
#define VIEW_JSON_H

/*
 * Writes one JSON text (RFC 8259), piece by piece. Integers keep all their digits, addresses are strings
 * "0x1f", and unknown values are null. A byte of a text that is not UTF-8 becomes the four characters \xNN.
 *
 * Runs in: the tool. Threads: one at a time.
 * Owns: nothing. A key is NULL in an array and at the top, and set in an object; keys are ASCII without
 * quotes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/estimate.h"
#include "view/text/sink.h"

struct json {
    struct sink *out; /* borrowed */
    unsigned depth;
    bool more; /* the next value has another one before it */
    bool line; /* write everything in one line; set by the creator */
};

void json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
/* '}' or ']'; writes a newline after the last one */
void json_close(struct json *j, char bracket);
void json_text(struct json *j, const char *key, const char *text); /* NULL: null */
void json_whole(struct json *j, const char *key, uint64_t value);
void json_instant(struct json *j, const char *key, uint64_t realtime_ns); /* an unknown time: null */
void json_signed(struct json *j, const char *key, int64_t value);
void json_real(struct json *j, const char *key, double value); /* not finite: null */
void json_flag(struct json *j, const char *key, bool value);
void json_hex(struct json *j, const char *key, uint64_t value);
void json_null(struct json *j, const char *key);
/** A double as an integer; not finite: null. */
void json_rounded(struct json *j, const char *key, double value);
/** KEY, KEY_low and KEY_high as integers, the interval rounded outwards. NULL: all three null. */
void json_estimate(struct json *j, const char *key, const struct estimate *e);

#endif
