/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sigsafe/pattern.h"

#include "base/sigsafe/str.h"

#define UTF8_BYTES_MAX 4

/*
 * Matches the next character of the pattern with the text at `t` (before its end), and advances *p past this character.
 * Returns the number of bytes of text that match it; 0: no match.
 */
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
 * Each part of the pattern between two stars is matched as far left as possible: a match further right cannot help,
 * because the next star matches any bytes in between. So only the last star is tried again, and the time is at most
 * len * strlen(pattern). Source: Russ Cox, "Glob Matching Can Be Simple And Fast Too", 2017.
 */
bool pattern_glob(const char *pattern, const char *text, size_t len)
{
    const char *end = text + len, *t = text, *p = pattern;
    const char *after_star = NULL, *star_end = NULL; /* the text that the last star matches ends there */

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

/* Matches the first `len` bytes of the text; with PATTERN_ANYWHERE, also the part of them after any slash. */
static bool fits_start(const char *pattern, unsigned how, const char *text, size_t len)
{
    if (!(how & PATTERN_ANYWHERE))
        return pattern_glob(pattern, text, len);
    return pattern_glob(pattern + PATTERN_ANYWHERE_BYTES, text, len) || pattern_glob(pattern, text, len);
}

/* "/lib/libc-2.31.so.6" -> the length of "/lib/libc-2.31"; `len` if the text is not the name of a shared object. */
static size_t cut_so(const char *text, size_t len)
{
    const char *name = text;
    for (const char *at = text; *at; at++)
        if (*at == '/')
            name = at + 1;
    for (const char *so = name; (so = text_find(so, ".so")); so++)
        if (so > name && (so[3] == '\0' || so[3] == '.'))
            return (size_t)(so - text);
    return len;
}

/* "/lib/libc-2.31" -> the length of "/lib/libc"; `len` if the text has no version. */
static size_t cut_version(const char *text, size_t len)
{
    size_t n = len;
    while (n > 0 && ((text[n - 1] >= '0' && text[n - 1] <= '9') || text[n - 1] == '.'))
        n--;
    bool version = n < len && text[n] != '.' && n > 1 && text[n - 1] == '-' && text[n - 2] != '/';
    return version ? n - 1 : len;
}

bool pattern_fits(const char *pattern, unsigned how, const char *text)
{
    size_t len = text_length(text);
    if (fits_start(pattern, how, text, len))
        return true;
    if (!(how & PATTERN_MODULE))
        return false;
    size_t stem = cut_so(text, len);
    if (stem == len)
        return false;
    if (fits_start(pattern, how, text, stem))
        return true;
    size_t bare = cut_version(text, stem);
    return bare < stem && fits_start(pattern, how, text, bare);
}
