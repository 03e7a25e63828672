/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites/demangle.h"

#include <stdbool.h>

#include "base/sigsafe/str.h"

struct name {
    char *text;
    size_t len, size;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static void put(struct name *n, const char *text, size_t len)
{
    for (size_t i = 0; i < len && n->len + 1 < n->size; i++)
        n->text[n->len++] = text[i];
    n->text[n->len] = '\0';
}

static void put_text(struct name *n, const char *text)
{
    put(n, text, text_length(text));
}

/* Reads a length and as many characters ("4name"), and returns the end. NULL: the text ends too early. */
static const char *source_name(const char *p, const char **start, size_t *len)
{
    for (*len = 0; is_digit(*p) && *len < 65536; p++)
        *len = *len * 10 + (size_t)(*p - '0');
    *start = p;
    for (size_t i = 0; i < *len; i++)
        if (!*p++)
            return NULL;
    return p;
}

/* Skips "S_", "S1A_", "St" or "T0_". NULL: the text has another form. */
static const char *skip_substitution(const char *p)
{
    if (*p == 'S' && is_lower(p[1]))
        return p + 2;
    for (p++; is_digit(*p) || (*p >= 'A' && *p <= 'Z'); p++)
        ;
    return *p == '_' ? p + 1 : NULL;
}

/* Skips "5_", the dimension of an array or the number of a lambda; each part may be missing. */
static const char *skip_index(const char *p)
{
    while (is_digit(*p))
        p++;
    return *p == '_' ? p + 1 : p;
}

#define NESTED_MOST 16u /* depth of recursion: the stack may be small, and a symbol may have any name */

/* Skips one item of a symbol, up to its E if it has items inside. `within`: recursion depth. NULL: not understood. */
static const char *skip_nested(const char *p, unsigned within)
{
    const char *start;
    size_t len;
    unsigned depth = 0;
    do {
        char c = *p;
        if (!c || within > NESTED_MOST)
            return NULL;
        if (is_digit(c)) {
            p = source_name(p, &start, &len);
        } else if (c == 'S' || c == 'T') {
            p = skip_substitution(p);
        } else if (c == 'A') {
            p = skip_index(p + 1);
        } else if (c == 'L' && is_lower(p[1])) { /* a literal of a basic type */
            while (*p && *p != 'E')
                p++;
            p = *p ? p + 1 : NULL;
        } else if (c == 'L' && (is_digit(p[1]) || p[1] == 'N')) {
            p = skip_nested(p + 1, within + 1);
            while (p && *p && *p != 'E')
                p++;
            p = p && *p ? p + 1 : NULL;
        } else if (c == 'U' && p[1] == 'l') {
            for (p += 2; p && *p && *p != 'E';)
                p = skip_nested(p, within + 1);
            p = p && *p ? skip_index(p + 1) : NULL;
        } else if (c == 'D' && p[1]) {
            depth += p[1] == 't' || p[1] == 'T';
            p += 2;
        } else {
            depth += c == 'N' || c == 'I' || c == 'Z' || c == 'J' || c == 'X' || c == 'F';
            depth -= c == 'E' && depth;
            p++;
        }
    } while (p && depth);
    return p;
}

static const char *skip(const char *p)
{
    return skip_nested(p, 0);
}

static const char *operator_name(struct name *n, const char *p)
{
    static const struct {
        char code[3];
        const char *name;
    } known[] = {{"nw", "operator new"},      {"na", "operator new[]"}, {"dl", "operator delete"},
                 {"da", "operator delete[]"}, {"cl", "operator()"},     {"ix", "operator[]"},
                 {"aS", "operator="},         {"pL", "operator+="}};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (text_starts(p, known[i].code)) {
            put_text(n, known[i].name);
            return p + 2;
        }
    put_text(n, "operator");
    return p[1] && !text_starts(p, "cv") ? p + 2 : NULL;
}

/* Writes one component of the name, and returns its end in the symbol; NULL: not understood. Constructor and destructor
 * have the name of the component before them, which lies in the output from `last` to `last_end` (excluded). */
static const char *component(struct name *n, const char *p, size_t last, size_t last_end)
{
    const char *start;
    size_t len;
    if (*p == 'L')
        p++; /* the name is local to its file */
    if (is_digit(*p)) {
        p = source_name(p, &start, &len);
        if (p && len == 12 && text_starts(start, "_GLOBAL__N_1"))
            put_text(n, "(anonymous namespace)");
        else if (p)
            put(n, start, len);
        return p;
    }
    if ((*p == 'C' || *p == 'D') && is_digit(p[1])) {
        if (*p == 'D')
            put_text(n, "~");
        put(n, n->text + last, last_end - last);
        return p + 2;
    }
    if (*p == 'U') {
        put_text(n, "{local}");
        return p[1] == 'l' ? skip(p) : skip_index(p + 2);
    }
    return is_lower(*p) ? operator_name(n, p) : NULL;
}

/* Writes the name for which St, Sa or another abbreviation stands. NULL: there is none at `p`. */
static const char *abbreviation(struct name *n, const char *p)
{
    static const char *const names[][2] = {{"St", "std"},
                                           {"Sa", "std::allocator"},
                                           {"Ss", "std::basic_string<>"},
                                           {"Sb", "std::basic_string"},
                                           {"Si", "std::basic_istream<>"},
                                           {"So", "std::basic_ostream<>"},
                                           {"Sd", "std::basic_iostream<>"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (text_starts(p, names[i][0])) {
            put_text(n, names[i][1]);
            return p + 2;
        }
    return NULL;
}

/* Skips ABI tags and template arguments after a component, and writes "<>" for the arguments. */
static const char *arguments(struct name *n, const char *p)
{
    while (p && *p == 'B')
        p = skip(p + 1);
    if (!p || *p != 'I')
        return p;
    put_text(n, "<>");
    return skip(p);
}

static const char *skip_qualifiers(const char *p)
{
    while (*p == 'r' || *p == 'V' || *p == 'K' || *p == 'R' || *p == 'O')
        p++;
    return p;
}

static void nested(struct name *n, const char *p)
{
    size_t last = n->len, last_end = n->len;
    p = skip_qualifiers(p);
    for (bool first = true; p && *p && *p != 'E'; first = false) {
        if (!first)
            put_text(n, "::");
        size_t start = n->len;
        p = *p == 'S' ? abbreviation(n, p) : component(n, p, last, last_end);
        last = start;
        last_end = n->len;
        p = p ? arguments(n, p) : NULL;
    }
}

const char *demangle_beginning(const char *symbol)
{
    const char *p = symbol;
    size_t len = 3;
    if (text_starts(p, "_Z")) {
        p += 2;
        if (*p == 'N')
            p = skip_qualifiers(p + 1);
        if (*p == 'L')
            p++;
        if (text_starts(p, "St"))
            return "std::";
        if (!is_digit(*p))
            return NULL;
        for (len = 0; is_digit(*p) && len < 3; p++)
            len = len * 10 + (size_t)(*p - '0');
        while (is_digit(*p))
            p++;
        if (*p == '_') /* perhaps _GLOBAL__N_1, an anonymous namespace */
            return NULL;
    }
    if (len < 3)
        return NULL;
    for (unsigned i = 0; i < 3; i++)
        if (!p[i] || p[i] == '.')
            return NULL;
    return p;
}

size_t demangle_name(const char *symbol, char *out, size_t size)
{
    struct name n = {.text = out, .size = size};
    const char *p = symbol;
    unsigned local = 0;
    if (!text_starts(p, "_Z")) {
        size_t len = 0;
        while (symbol[len] && (symbol[len] != '.' || !len))
            len++;
        put(&n, symbol, len);
        return n.len;
    }
    for (p += 2; *p == 'Z'; p++)
        local++;
    out[0] = '\0';
    if (*p == 'N') {
        nested(&n, p + 1);
    } else {
        if (text_starts(p, "St")) {
            put_text(&n, "std::");
            p += 2;
        }
        p = component(&n, p, 0, 0);
        arguments(&n, p);
    }
    while (local--)
        put_text(&n, "::{local}");
    return n.len;
}
