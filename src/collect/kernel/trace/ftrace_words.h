/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_FTRACE_WORDS_H
#define COLLECT_FTRACE_WORDS_H

/*
 * Words and numbers of a line of a trace. For ftrace_text.c only; inline because a line has some twenty of them.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing; words lie in the line.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "collect/kernel/trace/ftrace_text.h"

/* What is left of a line. */
struct text {
    const char *at, *end;
};

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline void skip_blanks(struct text *t)
{
    const char *at = t->at;
    while (at < t->end && (*at == ' ' || *at == '\t'))
        at++;
    t->at = at;
}

/* Takes the characters up to the next blank. memchr() looks at many at once; most of a trace are such words. */
static inline struct ftrace_text_span take_word(struct text *t)
{
    skip_blanks(t);
    const char *begin = t->at;
    const char *blank = memchr(begin, ' ', (size_t)(t->end - begin));
    t->at = blank ? blank : t->end;
    const char *tab = memchr(begin, '\t', (size_t)(t->at - begin));
    t->at = tab ? tab : t->at;
    return (struct ftrace_text_span){begin, (size_t)(t->at - begin)};
}

static inline bool is_word(struct ftrace_text_span s, const char *word)
{
    return s.len == strlen(word) && !memcmp(s.at, word, s.len);
}

/* Reads a decimal number, of 19 digits at most, that is the whole of the span. */
static inline bool read_decimal(struct ftrace_text_span s, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_digit(s.at[i]))
            return false;
        value = 10 * value + (uint64_t)(s.at[i] - '0');
    }
    *out = value;
    return s.len && s.len <= 19;
}

/* Reads a number of 16 digits at most, with "0x" or without. */
static inline bool read_hex(struct ftrace_text_span s, uint64_t *out)
{
    uint64_t value = 0;
    if (s.len > 2 && s.at[0] == '0' && (s.at[1] == 'x' || s.at[1] == 'X')) {
        s.at += 2;
        s.len -= 2;
    }
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.at[i];
        const int digit = is_digit(c)            ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    *out = value;
    return s.len && s.len <= 16;
}

static inline struct ftrace_text_span trim(struct text t)
{
    skip_blanks(&t);
    while (t.end > t.at && (t.end[-1] == ' ' || t.end[-1] == '\t'))
        t.end--;
    return (struct ftrace_text_span){t.at, (size_t)(t.end - t.at)};
}

#endif
