/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/option_values.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"

const struct word option_values_groups[] = {
    {"stack", ROLLUP_BY_STACK},   {"function", ROLLUP_BY_FUNCTION}, {"file", ROLLUP_BY_FILE},
    {"module", ROLLUP_BY_MODULE}, {"owner", ROLLUP_BY_OWNER},       {"thread", ROLLUP_BY_THREAD},
    {"size", ROLLUP_BY_SIZE},     {"process", ROLLUP_BY_PROCESS},   {NULL, 0}};
const struct word option_values_orders[] = {{"live", ROLLUP_SORT_LIVE},
                                            {"peak", ROLLUP_SORT_PEAK},
                                            {"allocated", ROLLUP_SORT_ALLOCATED},
                                            {"allocations", ROLLUP_SORT_ALLOCATIONS},
                                            {"temporary", ROLLUP_SORT_TEMPORARY},
                                            {"age", ROLLUP_SORT_AGE},
                                            {NULL, 0}};

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
    int code = command_misuse(c, "--%s %s is not known: it can be %s", option, text, list);
    free(list);
    return code;
}

int option_values_parse_top(const struct command *c, const char *text, uint32_t *top)
{
    char *end;
    if (!text)
        return -1;
    unsigned long n = strtoul(text, &end, 10);
    if (*end || !*text || *text == '-' || n > 1000000)
        return command_misuse(c, "--top %s is no number of rows", text);
    *top = (uint32_t)n;
    return -1;
}
