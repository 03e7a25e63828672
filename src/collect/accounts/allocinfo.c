/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/allocinfo.h"

#include <errno.h>
#include <string.h>

#define HEAD "allocinfo - version: "

/* ---- numbers and words; `at` moves behind what was read and never beyond `end` ---- */

static void skip_blanks(const char **at, const char *end)
{
    while (*at < end && (**at == ' ' || **at == '\t'))
        ++*at;
}

static bool read_whole(const char **at, const char *end, uint64_t *value)
{
    const char *begin = *at;
    *value = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(*value, 10u, value) ||
            __builtin_add_overflow(*value, (uint64_t)(**at - '0'), value))
            return false;
    return *at > begin;
}

static bool read_signed(const char **at, const char *end, int64_t *value)
{
    uint64_t whole, most = INT64_MAX;
    bool negative = *at < end && **at == '-';
    *at += negative;
    if (!read_whole(at, end, &whole) || whole > most + negative)
        return false;
    *value = (int64_t)(negative ? -whole : whole);
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static const char *without_blanks_behind(const char *begin, const char *end)
{
    while (end > begin && is_blank(end[-1]))
        end--;
    return end;
}

/* ---- one line ---- */

struct parse {
    struct accounts *to;
    struct alloc_texts *texts;
    const char *file; /* of the previous row: the next one often has the same */
    size_t file_len;
    uint32_t file_text;
};

/* Returns the first " func:" in the text, or NULL. */
static const char *find_function(const char *at, const char *end)
{
    static const char key[] = " func:";
    const size_t len = sizeof(key) - 1;
    while ((at = memchr(at, ' ', (size_t)(end - at)))) {
        if ((size_t)(end - at) < len)
            return NULL;
        if (!memcmp(at, key, len))
            return at;
        at++;
    }
    return NULL;
}

static uint32_t file_text(struct parse *p, const char *file, size_t len)
{
    if (!p->file || len != p->file_len || memcmp(file, p->file, len) != 0) {
        p->file_text = alloc_texts_put(p->texts, file, len);
        p->file = file;
        p->file_len = len;
    }
    return p->file_text;
}

/* Parses "mm/slub.c:2012" or "mm/slub.c:2012 [module]". Returns NULL, or the reason why the text is invalid. */
static const char *parse_place(struct parse *p, const char *begin, const char *end, struct account_key *key)
{
    const char *line, *module = NULL;
    uint64_t number;
    if (end > begin && end[-1] == ']') {
        for (module = end - 1; module > begin && *module != '['; module--)
            ;
        if (module == begin || module[-1] != ' ' || module + 2 == end)
            return "malformed module";
        key->module = alloc_texts_put(p->texts, module + 1, (size_t)(end - module) - 2);
        end = module - 1;
    }
    line = memrchr(begin, ':', (size_t)(end - begin));
    if (!line || line == begin)
        return "no file and line";
    const char *at = line + 1;
    if (!read_whole(&at, end, &number) || at != end || number > UINT32_MAX)
        return "invalid line number";
    key->line = (uint32_t)number;
    key->file = file_text(p, begin, (size_t)(line - begin));
    return NULL;
}

/* Parses a row without blanks at its end, and adds it. Returns NULL, or the reason why the row is invalid. */
static const char *parse_row(struct parse *p, const char *at, const char *end)
{
    static const char mark[] = " accurate:no";
    const size_t mark_len = sizeof(mark) - 1;
    struct account_key key = {0};
    int64_t bytes;
    uint64_t calls;
    bool inexact = false;
    skip_blanks(&at, end);
    if (!read_signed(&at, end, &bytes) || at == end || *at != ' ')
        return "invalid size, not a 64-bit number";
    skip_blanks(&at, end);
    if (!read_whole(&at, end, &calls) || at == end || *at != ' ')
        return "invalid number of calls, not a 64-bit number";
    skip_blanks(&at, end);
    const char *function = find_function(at, end);
    if (!function)
        return "no func:";
    const char *name = function + strlen(" func:");
    if ((size_t)(end - name) >= mark_len && !memcmp(end - mark_len, mark, mark_len)) {
        inexact = true;
        end = without_blanks_behind(name, end - mark_len);
    }
    if (name == end)
        return "empty function name";
    const char *why = parse_place(p, at, function, &key);
    if (why)
        return why;
    key.function = alloc_texts_put(p->texts, name, (size_t)(end - name));
    struct account_row *row = vec_push(&p->to->rows);
    row->key = key;
    row->copies = 1;
    row->of[ACCOUNT_AFTER] = (struct account_sum){
        .of = {[ACCOUNT_ALLOCATED_CALLS] = calls, [ACCOUNT_ALLOCATED_BYTES] = (uint64_t)bytes},
        .places = 1,
        .inexact = inexact};
    return NULL;
}

static void take_line(struct parse *p, const char *begin, const char *end)
{
    struct account_text *a = &p->to->text;
    const char *why, *bare = without_blanks_behind(begin, end);
    a->lines++;
    if (bare == begin || *begin == '#') /* the line of headings */
        return;
    if (end - begin > ALLOCINFO_LINE_BYTES)
        why = "too long";
    else if (memchr(begin, '\0', (size_t)(end - begin)))
        why = "contains a NUL byte";
    else
        why = parse_row(p, begin, bare);
    if (!why)
        return;
    if (a->bad_lines < ACCOUNT_BAD_LINES)
        a->bad[a->bad_lines] = (struct account_bad_line){a->lines, why};
    a->bad_lines++;
}

/* ---- the whole ---- */

/* Parses the first line. Returns 0, or -EPROTO with a line. */
static int parse_head(struct account_text *a, const char *at, const char *end, struct error *e)
{
    uint64_t version, minor;
    end = without_blanks_behind(at, end);
    if ((size_t)(end - at) < strlen(HEAD) || memcmp(at, HEAD, strlen(HEAD)) != 0)
        return error_set(e, EPROTO, "not allocinfo: the first line does not begin with \"" HEAD "\"");
    at += strlen(HEAD);
    if (!read_whole(&at, end, &version) || at == end || *at++ != '.' || !read_whole(&at, end, &minor) ||
        at != end || version < 1 || version > 2 || minor > UINT32_MAX)
        return error_set(e, EPROTO, "unknown version of allocinfo: only version 1 or 2 can be read");
    a->version = (unsigned)version;
    a->minor = (unsigned)minor;
    a->lines = 1;
    return 0;
}

int allocinfo_parse(struct accounts *a, struct alloc_texts *texts, const char *text, size_t len,
                    struct error *e)
{
    struct parse p = {.to = a, .texts = texts};
    const char *at = text, *end = text + len, *newline = len ? memchr(at, '\n', len) : NULL;
    *a = (struct accounts){.rows = {0}};
    if (len >= 2 && !memcmp(text, "\x1f\x8b", 2))
        return error_set(e, EPROTO, "compressed: use `zcat FILE | allium sys allocinfo -`");
    int bad = parse_head(&a->text, at, newline ? newline : end, e);
    if (bad)
        return bad;
    while (newline) {
        at = newline + 1;
        if (at == end)
            return 0;
        newline = memchr(at, '\n', (size_t)(end - at));
        take_line(&p, at, newline ? newline : end);
    }
    a->text.cut = true;
    return 0;
}
