/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/glob.h"

#define UTF8_BYTES_MAX 4

/* How many bytes at `t`, which is not the end, the pattern's next character takes: *p moves behind it. 0: no match. */
static size_t match_one(const char **p, const char *t, const char *end)
{
    size_t n = 1;
    if (**p == '?') {
        while (n < UTF8_BYTES_MAX && t + n < end && ((unsigned char)t[n] & 0xc0) == 0x80)
            n++;
    } else {
        if (**p == '\\' && (*p)[1])
            ++*p;
        if (!**p || **p != *t)
            return 0;
    }
    ++*p;
    return n;
}

/*
 * Between two stars stands a piece without stars. The leftmost place where it fits is never worse than a later one:
 * match_one() moves a later start to a later or equal end, and the next star makes up for the rest. So only the last
 * star is ever tried again, and the time is bounded by a product. Source: Russ Cox, "Glob Matching Can Be Simple And
 * Fast Too", 2017.
 */
bool query_glob(const char *pattern, const char *text, size_t len)
{
    const char *end = text + len, *t = text, *p = pattern;
    const char *after_star = NULL,
               *star_end = NULL; /* the last star's successor, and where its share of the text ends */

    for (;;) {
        if (*p == '*') {
            after_star = ++p;
            star_end = t;
            if (!*p)
                return true;
            continue;
        }
        if (t == end)
            return !*p;
        size_t n = match_one(&p, t, end);
        if (n) {
            t += n;
        } else if (after_star) {
            t = ++star_end;
            p = after_star;
        } else {
            return false;
        }
    }
}
