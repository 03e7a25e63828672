/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of --fail-if: whatever parses is a limit that can be reached, and a higher one is never met where a lower
 * one is not; whatever does not parse says where and why in one line. The bytes before the first NUL are the condition,
 * those behind it what a diff found.
 */
#include "require.h"

#include "cli/condition.h"
#include "cli/option_values.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What words.c says to people is not asked for here. */
int command_misuse(const struct command *c, const char *fmt, ...)
{
    (void)c;
    (void)fmt;
    abort();
}

/* Three bytes of the input at a time: so many samples of one size. */
static void add_value(struct rollup_value *v, const uint8_t **data, const uint8_t *end)
{
    if (end - *data < 3)
        return;
    const uint8_t *at = *data;
    *data += 3;
    double size = ldexp(1 + at[1] / 256.0, at[2] % 32), period = 512 << 10;
    double weight = 1 / -expm1(-size / period);
    struct profile_cell c = {.size_class = at[2] % 32, .period_bytes = 512 << 10};
    struct profile_sums s = {at[0] % 16u, at[0] % 16 * size, at[0] % 16 * size * weight, at[0] % 16 * weight};
    profile_estimate_bytes(&v->bytes, &c, &s);
    profile_estimate_count(&v->count, &c, &s);
}

static void check_order(const struct condition *c, const struct diff *d, const char *text)
{
    struct condition more = *c;
    if (c->share)
        more.share = 2 * c->share;
    else
        more.amount = 2 * c->amount + 1;
    enum condition_answer lower = condition_ask(c, d), higher = condition_ask(&more, d);
    require(lower == CONDITION_MET || higher != CONDITION_MET,
            "a higher limit is met, a lower one is not: %s", text);
}

static void check_condition(const struct condition *c, const char *text, const uint8_t *data,
                            const uint8_t *end)
{
    struct diff d = {.unknown = 0};
    const char *plus = strchr(text, '+');
    require(plus &&
                !strncmp(option_values_name(option_values_orders, c->metric), text, (size_t)(plus - text)),
            "another metric: %s", text);
    require(isfinite(c->share) && isfinite(c->amount) && c->share >= 0 && c->amount >= 0, "no limit: %s",
            text);
    require(!c->share || !c->amount, "two limits: %s", text);
    require(!strchr(plus, '%') || fabs(c->share * 100 - strtod(plus + 1, NULL)) <= 1e-9 * c->share * 100,
            "another share: %s", text);
    struct diff_value *v = &d.total[rollup_sort_metric((enum rollup_sort)c->metric)];
    for (int part = 0; part < DIFF_PARTS; part++)
        add_value(&v->of[part], &data, end);
    check_order(c, &d, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    size_t len = strlen(text);
    struct condition c;
    struct error e = {""};
    int rc = condition_parse(&c, text, &condition_of_samples, &e);
    require(!rc || (rc == -EINVAL && !strncmp(e.text, "--fail-if ", 10) && strstr(e.text, ": column ")),
            "no line: %s", e.text);
    require(!strpbrk(e.text, "\n\r\t\033"), "not one line: %s", e.text);
    if (!rc)
        check_condition(&c, text, data + len, data + size);
    free(text);
    return 0;
}
