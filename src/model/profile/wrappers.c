/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/wrappers.h"

#include <string.h>

#include "base/sigsafe/pattern.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_control(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return true;
    return false;
}

/* Returns the length of the line up to its comment. The # of a comment is the line's first character or follows a
 * blank: names may contain a #, too. */
static size_t without_comment(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (line[i] == '#' && (!i || is_blank(line[i - 1])))
            return i;
    return len;
}

static bool fits_all(const char *pattern, size_t len)
{
    while (len && (*pattern == '*' || *pattern == '?')) {
        pattern++;
        len--;
    }
    return !len;
}

/* Returns the reason to reject the pattern, or NULL if it is valid. */
static const char *fault_of(const char *pattern, size_t len, bool no)
{
    if (!len)
        return "a ! without a pattern";
    if (len > WRAPPERS_LINE_BYTES)
        return "the line is too long for a pattern";
    if (is_control(pattern, len))
        return "a control character in the pattern";
    if (!no && fits_all(pattern, len))
        return "the pattern fits every function";
    return NULL;
}

static void add_line(struct wrappers *w, const char *line, size_t len, size_t number,
                     struct wrappers_bad *bad)
{
    len = without_comment(line, len);
    while (len && is_blank(line[len - 1]))
        len--;
    for (; len && is_blank(*line); len--)
        line++;
    if (!len)
        return;
    bool no = *line == '!';
    for (len -= no, line += no; len && is_blank(*line); len--)
        line++;
    const char *why = fault_of(line, len, no);
    if (!why && w->all.len >= WRAPPERS_MAX)
        why = "too many patterns";
    if (!why) {
        *vec_push(&w->all) = (struct wrapper){.pattern = mem_strndup(line, len), .no = no};
        return;
    }
    if (!bad->lines++) {
        bad->first = number;
        bad->why = why;
    }
}

void wrappers_add(struct wrappers *w, const char *text, size_t len, struct wrappers_bad *bad)
{
    const char *end = text + len;
    *bad = (struct wrappers_bad){0};
    for (size_t number = 1; text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = newline ? newline : end;
        add_line(w, text, (size_t)(line_end - text), number, bad);
        text = newline ? newline + 1 : end;
    }
}

void wrappers_release(struct wrappers *w)
{
    vec_each (struct wrapper, it, &w->all)
        free(it->pattern);
    vec_release(&w->all);
}

bool wrappers_have(const struct wrappers *w, const char *function)
{
    size_t len = strlen(function);
    for (size_t i = w->all.len; i-- > 0;)
        if (pattern_glob(w->all.at[i].pattern, function, len))
            return !w->all.at[i].no;
    return false;
}

/* Returns whether the name is like "libfoo.so+0x1234", which stands for code without a symbol. */
static bool is_nameless(const char *function)
{
    const char *plus = strrchr(function, '+');
    return plus && !strncmp(plus, "+0x", 3) && plus[3] && !plus[3 + strspn(plus + 3, "0123456789abcdef")];
}

void wrappers_mark(const struct wrappers *w, struct profile *p)
{
    enum { NOT_ASKED, ORDINARY, WRAPPER, NAMELESS };
    unsigned char *known = mem_array(p->strings.len, 1); /* by string */
    vec_each (struct profile_line, line, &p->lines) {
        unsigned char *is = &known[line->function];
        if (*is == NOT_ASKED) {
            const char *function = profile_text(p, line->function);
            *is = wrappers_have(w, function) ? WRAPPER : is_nameless(function) ? NAMELESS : ORDINARY;
        }
        line->wrapper = *is == WRAPPER;
        line->nameless = *is == NAMELESS;
    }
    free(known);
}
