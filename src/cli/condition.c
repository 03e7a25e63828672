/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/condition.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
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

static const struct word metrics_of_samples[] = {
    {"live", ROLLUP_SORT_LIVE},           {"peak", ROLLUP_SORT_PEAK},
    {"allocated", ROLLUP_SORT_ALLOCATED}, {"allocations", ROLLUP_SORT_ALLOCATIONS},
    {"temporary", ROLLUP_SORT_TEMPORARY}, {NULL, 0}};

static bool counts_samples(int metric)
{
    return diff_counts((enum rollup_sort)metric);
}

const struct condition_metrics condition_of_samples = {metrics_of_samples, counts_samples};

static int complain_metric(struct error *e, const char *text, const struct word *words)
{
    char *list = option_values_list(words, NULL, NULL);
    struct buf b = BUF_INIT;
    buf_printf(&b, "unknown figure: use %s", list);
    int bad = complain(e, text, text, buf_str(&b));
    buf_release(&b);
    free(list);
    return bad;
}

int condition_parse(struct condition *c, const char *text, const struct condition_metrics *metrics,
                    struct error *e)
{
    size_t len = strcspn(text, "+");
    const char *sign = text + strcspn(text, "<>=-");
    const struct word *w = metrics->words;
    uint64_t bytes;
    *c = (struct condition){.text = text};
    while (w->text && (strlen(w->text) != len || strncmp(w->text, text, len)))
        w++;
    if (!w->text && *sign && !text[len])
        return complain(e, text, sign, "a condition is a growth: use '+' here, as in live+10% or live+50MiB");
    if (!w->text)
        return complain_metric(e, text, metrics->words);
    c->metric = w->value;
    if (!text[len])
        return complain(e, text, text + len, "missing amount: add +10% or +50MiB");
    const char *amount = text + len + 1;
    bool count = metrics->counts(c->metric);
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

int condition_parse_all(struct condition conditions[static CONDITIONS_MAX], int *n,
                        const struct command *command, const struct arguments *a,
                        const struct condition_metrics *metrics)
{
    struct error e = {""};
    for (*n = 0; *n < a->n_many; ++*n)
        if (condition_parse(&conditions[*n], a->many[*n], metrics, &e))
            return command_misuse(command, "%s", e.text);
    return -1;
}

const struct diff_value *condition_value(const struct condition *c, const struct diff *d)
{
    return &d->total[rollup_sort_metric((enum rollup_sort)c->metric)];
}

double condition_permitted(const struct condition *c, const struct diff *d)
{
    const struct rollup_value *before = &condition_value(c, d)->of[DIFF_BEFORE];
    return c->share * (counts_samples(c->metric) ? before->count.value : before->bytes.value) + c->amount;
}

enum condition_answer condition_ask(const struct condition *c, const struct diff *d)
{
    bool count = counts_samples(c->metric);
    const struct diff_value *v = condition_value(c, d);
    double permitted = condition_permitted(c, d);
    struct diff_change change = diff_change(v, count);
    if (diff_least_excess(v, count, c->share) > c->amount)
        return CONDITION_MET;
    if (change.interval.high > permitted && diff_smallest_growth(v, count) > permitted)
        return CONDITION_UNDECIDED;
    return change.value > permitted ? CONDITION_OPEN : CONDITION_NOT_MET;
}
