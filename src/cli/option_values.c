/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/option_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "base/vec.h"
#include "query/field.h"

#define TOP_MOST  1000000
#define WORDS_MAX 32

const struct word option_values_groups[] = {
    {"stack", ROLLUP_BY_STACK},   {"function", ROLLUP_BY_FUNCTION}, {"file", ROLLUP_BY_FILE},
    {"module", ROLLUP_BY_MODULE}, {"owner", ROLLUP_BY_OWNER},       {"thread", ROLLUP_BY_THREAD},
    {"size", ROLLUP_BY_SIZE},     {"process", ROLLUP_BY_PROCESS},   {NULL, 0}};
#define ORDERS                                                                                               \
    {"live", ROLLUP_SORT_LIVE}, {"peak", ROLLUP_SORT_PEAK}, {"allocated", ROLLUP_SORT_ALLOCATED},            \
        {"allocations", ROLLUP_SORT_ALLOCATIONS}, {"temporary", ROLLUP_SORT_TEMPORARY},                      \
    {                                                                                                        \
        "age", ROLLUP_SORT_AGE                                                                               \
    }
const struct word option_values_diff_orders[] = {ORDERS, {NULL, 0}};
const struct word option_values_orders[] = {
    ORDERS, {"requested", ROLLUP_SORT_REQUESTED}, {"slack", ROLLUP_SORT_SLACK}, {NULL, 0}};

char *option_values_list(const struct word *words, bool (*fits)(const struct word *word, const void *arg),
                         const void *arg)
{
    struct VEC(const char *) found = {0};
    struct buf list = BUF_INIT;
    for (const struct word *w = words; w->text; w++)
        if (!fits || fits(w, arg))
            *vec_push(&found) = w->text;
    for (size_t i = 0; i < found.len; i++)
        buf_printf(&list, "%s%s", !i ? "" : i + 1 < found.len ? ", " : " or ", found.at[i]);
    vec_release(&found);
    return buf_detach(&list);
}

const char *option_values_name(const struct word *words, int value)
{
    while (words->value != value)
        words++;
    return words->text;
}

/* NULL: none is similar. */
static const char *closest_word(const struct word *words, const char *text)
{
    struct query_field names[WORDS_MAX];
    size_t n = 0;
    for (const struct word *w = words; w->text && n < WORDS_MAX; w++)
        names[n++] = (struct query_field){.name = w->text};
    size_t meant = query_field_closest(names, n, text, strlen(text));
    return meant == QUERY_NO_FIELD ? NULL : names[meant].name;
}

int option_values_parse(const struct command *c, const char *option, const char *text,
                        const struct word *words, int *value)
{
    if (!text)
        return -1;
    for (const struct word *w = words; w->text; w++)
        if (!strcmp(w->text, text)) {
            *value = w->value;
            return -1;
        }
    char *list = option_values_list(words, NULL, NULL);
    const char *meant = closest_word(words, text);
    int code = meant
                   ? command_misuse(c, "unknown --%s %s; did you mean %s? Use %s", option, text, meant, list)
                   : command_misuse(c, "unknown --%s %s: use %s", option, text, list);
    free(list);
    return code;
}

int option_values_parse_time(const struct command *c, const char *option, const char *text, uint64_t least_ns,
                             uint64_t *ns)
{
    char least[UNITS_TEXT_BYTES];
    if (!text)
        return -1;
    if (units_parse_duration(text, ns))
        return command_misuse(c, "invalid time '%s' for --%s: use 500ms, 30s or 1h30m", text, option);
    if (*ns < least_ns)
        return command_misuse(c, "--%s %s is too short: use %s or more", option, text,
                              units_format_duration(least, (double)least_ns));
    return -1;
}

int option_values_parse_size(const struct command *c, const char *option, const char *text, uint64_t least,
                             uint64_t most, uint64_t *bytes)
{
    char low[UNITS_TEXT_BYTES], high[UNITS_TEXT_BYTES];
    if (!text)
        return -1;
    if (units_parse_size(text, bytes))
        return command_misuse(c, "invalid size '%s' for --%s: use 64K, 1.5M or a number of bytes", text,
                              option);
    if (*bytes < least || *bytes > most)
        return command_misuse(c, "--%s %s is out of range: use %s to %s", option, text,
                              units_format_size(low, (double)least), units_format_size(high, (double)most));
    return -1;
}

int option_values_parse_count(const struct command *c, const char *option, const char *text, uint32_t least,
                              uint32_t most, uint32_t *n)
{
    char *end;
    if (!text)
        return -1;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end)
        return command_misuse(c, "invalid number '%s' for --%s", text, option);
    if (errno || value < least || value > most)
        return command_misuse(c, "--%s %s is out of range: use %u to %u", option, text, least, most);
    *n = (uint32_t)value;
    return -1;
}

int option_values_parse_top(const struct command *c, const char *text, uint32_t *top)
{
    return option_values_parse_count(c, "top", text, 0, TOP_MOST, top);
}
