/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/tree/c_functions.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 256u
#define NESTED_MAX     64u /* of #if */

/* A part of the text: a name, or what is between parentheses. */
struct part {
    const char *at;
    size_t len;
};

struct scan {
    const char *at, *end, *counted; /* `line` is that of `counted` */
    uint32_t line;
    c_function_found found;
    void *arg;
    /* of the declaration so far: the name before a pair of parentheses that may be a function's, and what they hold */
    struct part word, name, inside;
    uint32_t name_line;
    bool is_value; /* after =: what comes is no function */
    unsigned depth, before[NESTED_MAX], after[NESTED_MAX],
        nested; /* of braces; at #if, and at the first #else */
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

static bool equals(struct part p, const char *text)
{
    return p.len == strlen(text) && !memcmp(p.at, text, p.len);
}

static bool begins(struct part p, const char *text)
{
    return p.len >= strlen(text) && !memcmp(p.at, text, strlen(text));
}

static uint32_t line_at(struct scan *s, const char *at)
{
    while (s->counted < at) {
        const char *next = memchr(s->counted, '\n', (size_t)(at - s->counted));
        if (!next)
            break;
        s->line++;
        s->counted = next + 1;
    }
    s->counted = at > s->counted ? at : s->counted;
    return s->line;
}

/* ---- what is passed over ---- */

static void skip_comment(struct scan *s)
{
    const char *close;
    if (s->at[1] == '/') {
        close = memchr(s->at, '\n', (size_t)(s->end - s->at));
        s->at = close ? close : s->end;
    } else {
        close = memmem(s->at + 2, (size_t)(s->end - s->at - 2), "*/", 2);
        s->at = close ? close + 2 : s->end;
    }
}

static bool is_comment(const struct scan *s)
{
    return s->end - s->at > 1 && *s->at == '/' && (s->at[1] == '/' || s->at[1] == '*');
}

/* A string, or a character: they end at the end of the line at the latest. */
static void skip_quoted(struct scan *s)
{
    const char quote = *s->at++;
    while (s->at < s->end && *s->at != quote && *s->at != '\n')
        s->at += 1 + (*s->at == '\\' && s->end - s->at > 1);
    s->at += s->at < s->end && *s->at == quote;
}

/* The end of a line that may go on after a backslash, or in a comment. */
static void skip_line(struct scan *s)
{
    while (s->at < s->end && *s->at != '\n') {
        if (is_comment(s) && s->at[1] == '*')
            skip_comment(s);
        else if (*s->at == '\\' && s->end - s->at > 1)
            s->at += s->at[1] == '\r' && s->end - s->at > 2 ? 3 : 2;
        else
            s->at++;
    }
}

/* ---- the preprocessor ---- */

static struct part directive(struct scan *s)
{
    const char *at = s->at + 1;
    while (at < s->end && (*at == ' ' || *at == '\t'))
        at++;
    struct part p = {at, 0};
    while (at + p.len < s->end && is_word(at[p.len]))
        p.len++;
    return p;
}

static bool is_zero(const struct scan *s, struct part p)
{
    const char *at = p.at + p.len;
    while (at < s->end && (*at == ' ' || *at == '\t'))
        at++;
    return equals(p, "if") && at < s->end && *at == '0' && (s->end - at == 1 || is_blank(at[1]));
}

/* From behind "#if 0" to the "#else", "#elif" or "#endif" of it. */
static void skip_dead(struct scan *s)
{
    unsigned deep = 0;
    while (s->at < s->end) {
        const char *next = memchr(s->at, '\n', (size_t)(s->end - s->at));
        const char *at = next ? next + 1 : s->end;
        while (at < s->end && (*at == ' ' || *at == '\t'))
            at++;
        s->at = at;
        if (at == s->end || *at != '#')
            continue;
        struct part p = directive(s);
        if (begins(p, "if"))
            deep++;
        else if (!deep && (begins(p, "el") || equals(p, "endif")))
            return;
        else if (equals(p, "endif"))
            deep--;
    }
}

/* Each branch begins with the depth of braces before the #if. After the #endif, the depth is the one at which the first
 * branch ended. */
static void take_directive(struct scan *s)
{
    struct part p = directive(s);
    const bool dead = is_zero(s, p);
    if (begins(p, "if") && s->nested++ < NESTED_MAX) {
        s->before[s->nested - 1] = s->depth;
        s->after[s->nested - 1] = UINT32_MAX;
    } else if (s->nested && s->nested <= NESTED_MAX && (begins(p, "el") || equals(p, "endif"))) {
        unsigned *after = &s->after[s->nested - 1];
        *after = *after == UINT32_MAX ? s->depth : *after;
        s->depth = begins(p, "el") ? s->before[s->nested - 1] : *after;
    }
    if (equals(p, "endif") && s->nested)
        s->nested--;
    skip_line(s);
    if (dead)
        skip_dead(s);
}

/* ---- names ---- */

static void tell(struct scan *s, const char *prefix, struct part p, const char *suffix)
{
    char name[NAME_MAX_BYTES];
    const int len = snprintf(name, sizeof(name), "%s%.*s%s", prefix, (int)p.len, p.at, suffix);
    if (p.len && p.len < NAME_MAX_BYTES / 2 && len > 0 && (size_t)len < sizeof(name))
        s->found(s->arg, name, (size_t)len, s->name_line);
}

/* The first argument of a macro. */
static struct part first_argument(struct part inside)
{
    while (inside.len && is_blank(*inside.at)) {
        inside.at++;
        inside.len--;
    }
    struct part p = {inside.at, 0};
    while (p.len < inside.len && is_word(p.at[p.len]))
        p.len++;
    return p;
}

/* What SYSCALL_DEFINEx() makes of a name; __x64_sys_open() and the like are found without the architecture. */
static bool tell_call(struct scan *s, struct part arg)
{
    static const struct {
        const char *macro, *names[4];
    } macros[] = {{"SYSCALL_DEFINE", {"sys_", "__se_sys_", "__do_sys_"}},
                  {"COMPAT_SYSCALL_DEFINE", {"compat_sys_", "__se_compat_sys_", "__do_compat_sys_"}},
                  {"BPF_CALL_", {"", "____"}}};
    for (size_t i = 0; i < sizeof(macros) / sizeof(*macros); i++) {
        if (!begins(s->name, macros[i].macro))
            continue;
        for (size_t k = 0; k < 4 && macros[i].names[k]; k++)
            tell(s, macros[i].names[k], arg, "");
        return true;
    }
    return false;
}

/* Macros whose first argument is the function's name: DEFINE_IDTENTRY(exc_debug) { ... */
static bool names_argument(struct part name)
{
    static const char *const macros[] = {"DEFINE_IDTENTRY", "DEFINE_FREEZER", "STATIC_NOKPROBE", "NOKPROBE_"};
    for (size_t i = 0; i < sizeof(macros) / sizeof(*macros); i++)
        if (begins(name, macros[i]))
            return true;
    return false;
}

static void take_function(struct scan *s)
{
    const struct part arg = first_argument(s->inside);
    if (tell_call(s, arg))
        return;
    if (names_argument(s->name))
        tell(s, "", arg, "");
    else
        tell(s, "", s->name, "");
}

/* "DEFINE_SHOW_ATTRIBUTE(x);" makes x_open() of the x_show() before it. */
static void take_macro(struct scan *s)
{
    static const char *const opens[] = {"DEFINE_SHOW_ATTRIBUTE",    "DEFINE_SHOW_STORE_ATTRIBUTE",
                                        "DEFINE_SEQ_ATTRIBUTE",     "DEFINE_SIMPLE_ATTRIBUTE",
                                        "DEFINE_DEBUGFS_ATTRIBUTE", "DEFINE_SIMPLE_ATTRIBUTE_SIGNED"};
    for (size_t i = 0; i < sizeof(opens) / sizeof(*opens); i++)
        if (equals(s->name, opens[i]))
            tell(s, "", first_argument(s->inside), "_open");
}

/* ---- declarations ---- */

static void forget(struct scan *s)
{
    s->word.len = s->name.len = 0;
    s->is_value = false;
}

/* Names before parentheses that are attributes of a function, and not the function. */
static bool is_attribute(struct part p)
{
    static const char *const words[] = {"__attribute__",
                                        "__printf",
                                        "__scanf",
                                        "__acquires",
                                        "__releases",
                                        "__must_hold",
                                        "__acquire",
                                        "__release",
                                        "__section",
                                        "__aligned",
                                        "__alloc_size",
                                        "__realloc_size",
                                        "__nonnull",
                                        "__assume_aligned",
                                        "__error",
                                        "__compiletime_error",
                                        "__no_sanitize",
                                        "__cond_acquires",
                                        "__cond_releases",
                                        "__diagnose_as",
                                        "__alias",
                                        "__attribute",
                                        "__declspec",
                                        "__counted_by",
                                        "__free",
                                        "__cleanup",
                                        "__must_hold_shared",
                                        "__compiletime_warning",
                                        "__warning",
                                        "__acquires_shared",
                                        "__releases_shared",
                                        "__ref",
                                        "_Alignas",
                                        "__typeof__",
                                        "typeof",
                                        "__typeof",
                                        "__cond_lock",
                                        "__malloc",
                                        "__bpf_md_ptr",
                                        "__optimize",
                                        "__target"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (equals(p, words[i]))
            return true;
    return false;
}

/* Returns what is between the parentheses, the first of which is at s->at. Unbalanced ones end where a line begins with
 * a brace, or at the end. */
static struct part take_parentheses(struct scan *s)
{
    struct part p = {++s->at, 0};
    for (unsigned deep = 1; s->at < s->end;) {
        const char c = *s->at;
        if (is_comment(s)) {
            skip_comment(s);
        } else if (c == '"' || c == '\'') {
            skip_quoted(s);
        } else if (c == '#' && s->at[-1] == '\n') {
            skip_line(s);
        } else if ((c == '{' || c == '}') && s->at[-1] == '\n') {
            break;
        } else {
            deep += c == '(';
            deep -= c == ')';
            p.len = (size_t)(s->at - p.at);
            s->at++;
            if (!deep)
                return p;
        }
    }
    p.len = (size_t)(s->at - p.at);
    return p;
}

/* "(*signal(int number, void (*f)(int)))(int)": the function is within. */
static bool take_inner(struct scan *s, struct part inside)
{
    struct part p = inside;
    while (p.len && (is_blank(*p.at) || *p.at == '*')) {
        p.at++;
        p.len--;
    }
    const struct part name = first_argument(p);
    if (!name.len || p.at == inside.at || name.len == p.len || name.at[name.len] != '(')
        return false;
    s->name = name;
    return true;
}

static void open_parentheses(struct scan *s)
{
    const struct part word = s->word;
    const char *at = s->at;
    const struct part inside = take_parentheses(s);
    s->word.len = 0;
    if (s->is_value || (word.len && is_attribute(word)))
        return;
    if (take_inner(s, inside)) {
        s->name_line = line_at(s, at);
        return;
    }
    if (!word.len)
        return;
    s->name = word;
    s->inside = inside;
    s->name_line = line_at(s, at);
}

static void open_brace(struct scan *s)
{
    if (s->name.len && !s->is_value)
        take_function(s);
    s->depth = 1;
    s->at++;
    if (!s->is_value) /* "struct x { ... } f(...)": what is behind is another declaration, or its end */
        forget(s);
}

static void take_word(struct scan *s)
{
    struct part p = {s->at, 0};
    while (s->at < s->end && is_word(*s->at))
        s->at++;
    p.len = (size_t)(s->at - p.at);
    s->word = p;
}

static void outside(struct scan *s)
{
    const char c = *s->at;
    if (is_word(c)) {
        take_word(s);
    } else if (c == '(') {
        open_parentheses(s);
    } else if (c == '{') {
        open_brace(s);
    } else {
        if (c == ';' && s->name.len && !s->is_value)
            take_macro(s);
        if (c == ';' || c == '}')
            forget(s);
        else if (c == '=')
            s->is_value = true;
        else if (!is_blank(c))
            s->word.len = 0;
        s->at++;
    }
}

/* Within braces only their pairs matter. */
static void inside(struct scan *s)
{
    const char c = *s->at;
    s->depth += c == '{';
    if (c == '}')
        s->depth = s->at[-1] == '\n' ? 0 : s->depth - 1;
    s->at++;
}

/* The bytes that mean something within braces. */
static const char marks[256] = {['{'] = 1, ['}'] = 1, ['"'] = 1, ['\''] = 1, ['/'] = 1, ['#'] = 1};

static bool is_first(const struct scan *s, const char *begin)
{
    const char *at = s->at;
    while (at > begin && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    return at == begin || at[-1] == '\n';
}

void c_functions_find(const char *text, size_t len, c_function_found found, void *arg)
{
    struct scan s = {
        .at = text, .end = text + len, .counted = text, .line = 1, .found = found, .arg = arg, .depth = 0};
    while (s.at < s.end) {
        const char c = *s.at;
        if (s.depth && !marks[(unsigned char)c])
            s.at++;
        else if (is_comment(&s))
            skip_comment(&s);
        else if (c == '"' || c == '\'')
            skip_quoted(&s);
        else if (c == '#' && is_first(&s, text))
            take_directive(&s);
        else if (s.depth)
            inside(&s);
        else
            outside(&s);
    }
}
