/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/trace/sum_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define EXAMPLE "malloc.size,by=site"

static const char names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

static bool is_name(const char *text)
{
    return *text && !text[strspn(text, names)];
}

static bool is_event(const char *text)
{
    const size_t provider = strspn(text, names);
    return provider && (!text[provider] || (text[provider] == ':' && is_name(text + provider + 1)));
}

static int add_by(struct sum_spec *s, const char *field, struct error *e)
{
    if (!is_name(field))
        return error_set(e, EINVAL, "'%s' is no name of a field: use %s", field, EXAMPLE);
    if (s->n_by == SUM_SPEC_BY_MAX)
        return error_set(e, EINVAL, "more than %u fields after by=: leave out %s", SUM_SPEC_BY_MAX, field);
    for (unsigned i = 0; i < s->n_by; i++)
        if (!strcmp(s->by[i], field))
            return error_set(e, EINVAL, "%s is there twice: leave one out", field);
    s->by[s->n_by++] = field;
    return 0;
}

static int parse_event(struct sum_spec *s, char *text, struct error *e)
{
    char *dot = strchr(text, '.');
    if (dot)
        *dot = '\0';
    s->event = text;
    s->field = dot ? dot + 1 : NULL;
    if (!is_event(text))
        return error_set(e, EINVAL, "'%s' is no name of an event: use %s, or PROVIDER:NAME", text, EXAMPLE);
    if (dot && !is_name(s->field))
        return error_set(e, EINVAL, "'%s' is no name of a field: use %s", s->field, EXAMPLE);
    return 0;
}

int sum_spec_parse(struct sum_spec *s, const char *text, struct error *e)
{
    *s = (struct sum_spec){.text = mem_strdup(text)};
    char *rest = s->text, *item = strsep(&rest, ",");
    int bad = parse_event(s, item, e);
    while (!bad && (item = strsep(&rest, ","))) {
        const bool begins = !strncmp(item, "by=", 3);
        if (!begins && !s->n_by)
            bad = error_set(e, EINVAL, "'%s' is not expected: use by=%s", item, item);
        else
            bad = add_by(s, begins ? item + 3 : item, e);
    }
    if (bad)
        sum_spec_release(s);
    return bad;
}

void sum_spec_release(struct sum_spec *s)
{
    free(s->text);
    *s = (struct sum_spec){.text = NULL};
}

bool sum_spec_is_user(const struct sum_spec *s)
{
    return strchr(s->event, ':') != NULL && !sum_spec_is_kernel(s);
}

bool sum_spec_is_kernel(const struct sum_spec *s)
{
    return !strncmp(s->event, "kernel:", 7);
}

bool sum_spec_has(const struct sum_spec *s, const char *event)
{
    static const char *const alloc[] = {"malloc", "calloc", "memalign", "realloc_end"};
    if (!strcmp(s->event, "realloc"))
        return !strcmp(event, "realloc_end");
    if (strcmp(s->event, "alloc") != 0)
        return !strcmp(s->event, event);
    for (size_t i = 0; i < sizeof(alloc) / sizeof(*alloc); i++)
        if (!strcmp(alloc[i], event))
            return true;
    return false;
}
