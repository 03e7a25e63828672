/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/cexpr.h"

#include <ctype.h>
#include <string.h>

/* The limit of nested brackets and signs. The kernel's macros nest some fifteen deep. */
#define DEPTH_MAX 100

struct cexpr {
    const char *at;
    const struct cexpr_names *names;
    unsigned depth;
    bool bad;
};

static uint64_t binary(struct cexpr *x, int strength);

static void skip_blanks(struct cexpr *x)
{
    x->at += strspn(x->at, " \t");
}

static uint64_t fail(struct cexpr *x)
{
    x->bad = true;
    return 0;
}

static bool begins_name(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static size_t name_length(const char *at)
{
    size_t len = 0;
    while (begins_name(at[len]) || (len && isdigit((unsigned char)at[len])))
        len++;
    return len;
}

/* `at` is the text behind "(". Returns the length of "type)" and of the blanks after it if an operand follows, so that
 * the bracket is a cast; else 0. */
static size_t cast_length(const char *at)
{
    const char *p = at + strspn(at, " \t");
    if (!begins_name(*p))
        return 0;
    while (begins_name(*p)) { /* "unsigned long" */
        p += name_length(p);
        p += strspn(p, " \t");
    }
    while (*p == '*' || *p == ' ')
        p++;
    if (*p++ != ')')
        return 0;
    p += strspn(p, " \t");
    return *p == '(' || *p == '~' || begins_name(*p) || isdigit((unsigned char)*p) ? (size_t)(p - at) : 0;
}

static uint64_t number(struct cexpr *x)
{
    unsigned base = x->at[0] == '0' && (x->at[1] | 0x20) == 'x' ? 16 : x->at[0] == '0' ? 8 : 10;
    uint64_t sum = 0;
    x->at += base == 16 ? 2 : 0;
    const char *begin = x->at;
    for (; isxdigit((unsigned char)*x->at); x->at++) {
        unsigned digit =
            isdigit((unsigned char)*x->at) ? (unsigned)(*x->at - '0') : (unsigned)(*x->at | 0x20) - 'a' + 10;
        if (digit >= base || __builtin_mul_overflow(sum, base, &sum) ||
            __builtin_add_overflow(sum, digit, &sum))
            return fail(x);
    }
    if (x->at == begin)
        return fail(x);
    x->at += strspn(x->at, "uUlL");
    return sum;
}

static uint64_t name(struct cexpr *x)
{
    uint64_t value = 0;
    size_t len = name_length(x->at);
    if (!x->names || !x->names->find(x->names->context, x->at, len, &value))
        return fail(x);
    x->at += len;
    return value;
}

static uint64_t bracket(struct cexpr *x)
{
    uint64_t value = binary(x, 0);
    if (*x->at != ')')
        return fail(x);
    x->at++;
    return value;
}

static uint64_t unary(struct cexpr *x)
{
    uint64_t value;
    if (x->bad || ++x->depth > DEPTH_MAX)
        return fail(x);
    skip_blanks(x);
    if (*x->at == '~') {
        x->at++;
        value = ~unary(x);
    } else if (*x->at == '-') {
        x->at++;
        value = -unary(x);
    } else if (*x->at == '(') {
        size_t cast = cast_length(++x->at);
        x->at += cast;
        value = cast ? unary(x) : bracket(x);
    } else {
        value = isdigit((unsigned char)*x->at) ? number(x) : begins_name(*x->at) ? name(x) : fail(x);
    }
    x->depth--;
    skip_blanks(x);
    return value;
}

/* Returns the operator of this strength at `at`, or NULL if there is none. Strength 0 binds most weakly, as in C. */
static const char *operator_of(int strength, const char *at)
{
    static const char *const all[][2] = {{"|", NULL}, {"^", NULL}, {"&", NULL}, {"<<", ">>"}, {"+", "-"}};
    for (int i = 0; i < 2; i++) {
        const char *sign = all[strength][i];
        size_t len = sign ? strlen(sign) : 0;
        if (len && !strncmp(at, sign, len) && (len > 1 || at[1] != at[0])) /* not || */
            return sign;
    }
    return NULL;
}

static uint64_t apply(struct cexpr *x, const char *sign, uint64_t a, uint64_t b)
{
    switch (*sign) {
    case '|':
        return a | b;
    case '^':
        return a ^ b;
    case '&':
        return a & b;
    case '+':
        return a + b;
    case '-':
        return a - b;
    default: /* a shift; C does not define shifts by 64 or more */
        if (b > 63)
            return fail(x);
        return *sign == '<' ? a << b : a >> b;
    }
}

static uint64_t binary(struct cexpr *x, int strength)
{
    enum { STRONGEST = 4 };
    uint64_t value = strength == STRONGEST ? unary(x) : binary(x, strength + 1);
    for (const char *sign; !x->bad && (sign = operator_of(strength, x->at));) {
        x->at += strlen(sign);
        uint64_t other = strength == STRONGEST ? unary(x) : binary(x, strength + 1);
        value = x->bad ? 0 : apply(x, sign, value, other);
    }
    return value;
}

const char *cexpr_parse(const char *text, const struct cexpr_names *names, uint64_t *value)
{
    struct cexpr x = {.at = text, .names = names};
    *value = binary(&x, 0);
    return x.bad ? NULL : x.at;
}
