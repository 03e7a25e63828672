/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/condition.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "cli/option_values.h"
#include "model/profile/diff_power.h"

#define SHOWN_BYTES 100

/* One line, whatever the text holds, and however long it is. */
static int complain(struct error *e, const char *text, const char *at, const char *what)
{
    char *shown = mem_strndup(text, SHOWN_BYTES);
    for (char *c = shown; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    int bad = error_set(e, EINVAL, "--fail-if %s: column %zu: %s", shown, (size_t)(at - text) + 1, what);
    free(shown);
    return bad;
}

/* Reads a plain decimal number that is followed by `unit` and nothing else. False: the text is something else. */
static bool parse_number(const char *text, const char *unit, double *value)
{
    size_t len = strspn(text, "0123456789.");
    char digits[32], *end;
    if (!len || len >= sizeof(digits) || strcmp(text + len, unit))
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    *value = strtod(digits, &end);
    return !*end;
}

int condition_parse(struct condition *c, const char *text, struct error *e)
{
    size_t len = strcspn(text, "+");
    const char *sign = text + strcspn(text, "<>=");
    const struct word *w = option_values_orders;
    uint64_t bytes;
    *c = (struct condition){.text = text};
    while (w->text && (strlen(w->text) != len || strncmp(w->text, text, len) || w->value == ROLLUP_SORT_AGE))
        w++;
    if (!w->text && *sign)
        return complain(e, text, sign, "a condition is a growth: use '+' here, as in live+10% or peak+50MiB");
    if (!w->text)
        return complain(e, text, text, "unknown figure: use live, peak, allocated, allocations or temporary");
    c->sort = (enum rollup_sort)w->value;
    if (!text[len])
        return complain(e, text, text + len, "missing amount: add +10% or +50MiB");
    const char *amount = text + len + 1;
    bool count = diff_counts(c->sort);
    if (strchr(amount, '%')) {
        if (parse_number(amount, "%", &c->share)) {
            c->share /= 100;
            return 0;
        }
        return complain(e, text, amount, "invalid percentage: use 10% or 2.5%");
    }
    if (count)
        return parse_number(amount, "", &c->amount)
                   ? 0
                   : complain(e, text, amount, "invalid number of allocations: use 1000 or 10%");
    if (*amount && *amount != '0' && !amount[strspn(amount, "0123456789.")])
        return complain(e, text, amount, "missing unit: use 10%, 10MiB, or 10B for bytes");
    if (units_parse_size(amount, &bytes))
        return complain(e, text, amount, "invalid size: use 50MiB, 1G or 10%");
    c->amount = (double)bytes;
    return 0;
}

const struct diff_value *condition_value(const struct condition *c, const struct diff *d)
{
    return &d->total[rollup_sort_metric(c->sort)];
}

double condition_permitted(const struct condition *c, const struct diff *d)
{
    const struct rollup_value *before = &condition_value(c, d)->of[DIFF_BEFORE];
    return c->share * (diff_counts(c->sort) ? before->count.value : before->bytes.value) + c->amount;
}

enum condition_answer condition_ask(const struct condition *c, const struct diff *d)
{
    bool count = diff_counts(c->sort);
    const struct diff_value *v = condition_value(c, d);
    double permitted = condition_permitted(c, d);
    struct diff_change change = diff_change(v, count);
    if (diff_least_excess(v, count, c->share) > c->amount)
        return CONDITION_MET;
    if (change.interval.high > permitted && diff_smallest_growth(v, count) > permitted)
        return CONDITION_UNDECIDED;
    return change.value > permitted ? CONDITION_OPEN : CONDITION_NOT_MET;
}
