/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_STR_H
#define BASE_STR_H

/*
 * String functions for the target. They are bounded, need no locale and no libc, and their output ends with NUL.
 *
 * Runs in: target, cold paths. Threads: any.
 */

#include <stddef.h>
#include <stdint.h>

static inline size_t text_length(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}

/** Copies as much of the text as fits. Returns the length of the copy. */
static inline size_t text_copy(char *out, size_t size, const char *from)
{
    size_t n = 0;
    for (; n + 1 < size && from[n]; n++)
        out[n] = from[n];
    out[n] = '\0';
    return n;
}

/** Writes a, followed by b, cut to the size of `out`. Returns the length. */
static inline size_t text_join(char *out, size_t size, const char *a, const char *b)
{
    size_t n = text_copy(out, size, a);
    return n + text_copy(out + n, size - n, b);
}

static inline int text_starts(const char *s, const char *prefix)
{
    for (; *prefix; s++, prefix++)
        if (*s != *prefix)
            return 0;
    return 1;
}

static inline int text_ends(const char *s, const char *suffix)
{
    size_t length = text_length(s), end = text_length(suffix);
    return length >= end && text_starts(s + length - end, suffix);
}

/** Cuts the suffix off. Returns whether the text ended with it. */
static inline int text_cut_end(char *s, const char *suffix)
{
    int cut = text_ends(s, suffix);
    if (cut)
        s[text_length(s) - text_length(suffix)] = '\0';
    return cut;
}

/** Returns the first occurrence of `what` in `s`, or NULL. */
static inline const char *text_find(const char *s, const char *what)
{
    for (; *s; s++)
        if (text_starts(s, what))
            return s;
    return NULL;
}

/** Returns the decimal number at the start of a text, at most UINT64_MAX. 0: there is no number. */
static inline uint64_t text_number(const char *s)
{
    uint64_t n = 0;
    for (; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
            return UINT64_MAX;
    return n;
}

/**
 * Like text_number(), with an optional suffix k, m, g or t (powers of 1024, either case). Ignores further characters.
 */
static inline uint64_t text_size(const char *s)
{
    uint64_t n = text_number(s);
    while (*s >= '0' && *s <= '9')
        s++;
    int shift = 0;
    switch (*s | 0x20) {
    case 't':
        shift += 10; /* fall through */
    case 'g':
        shift += 10; /* fall through */
    case 'm':
        shift += 10; /* fall through */
    case 'k':
        shift += 10;
    }
    return shift && n > UINT64_MAX >> shift ? UINT64_MAX : n << shift;
}

/** Writes n in base 10 or 16, with leading zeros up to `digits`. Returns the length. `out` has 24 bytes. */
static inline size_t text_from_number(char *out, uint64_t n, unsigned base, size_t digits)
{
    char reversed[24];
    size_t len = 0;
    do {
        reversed[len++] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n || len < digits);
    for (size_t i = 0; i < len; i++)
        out[i] = reversed[len - 1 - i];
    out[len] = '\0';
    return len;
}

#endif
