/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/tree/makefile_words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

/* The name CONFIG_X of "$(CONFIG_X)" or "$(subst m,y,$(CONFIG_X))". Returns NULL if there is none, or more than one. */
static char *option_of(const char *suffix, size_t len)
{
    const char *at = memmem(suffix, len, "$(CONFIG_", 9);
    if (!at)
        return NULL;
    at += 2;
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_')
        n++;
    const size_t rest = len - (size_t)(at + n - suffix);
    return at + n > suffix + len || memmem(at + n, rest, "CONFIG_", 7) ? NULL : mem_strndup(at, n);
}

/* Paths that lead up, or are made of variables, are none. */
static bool is_object(const struct makefile_word *w)
{
    const char *text = w->text;
    const size_t len = w->len;
    return len && (text[len - 1] == '/' || (len > 2 && !strncmp(text + len - 2, ".o", 2))) &&
           !memchr(text, '$', len) && *text != '/' && !memmem(text, len, "..", 2);
}

/* "base-suffix += words": the suffix is an option, or y, m or objs. Other lines are passed over. */
static void take_line(const char *line, makefile_word_found found, void *arg)
{
    const char *base = line + strspn(line, " \t");
    const char *equals = strchr(base, '=');
    if (!equals)
        return;
    const char *end = equals;
    while (end > base && strchr("+:? \t", end[-1]))
        end--;
    const char *dash = NULL; /* names have dashes, too: the one before the option, or else the last one */
    const char *dollar = memmem(base, (size_t)(end - base), "-$(", 3);
    for (const char *at = base; at < end; at++)
        if (*at == '-' && (!dollar || at <= dollar))
            dash = at;
    if (!dash || dash == base || memchr(base, ' ', (size_t)(dash - base)))
        return;
    const char *suffix = dash + 1;
    const size_t len = (size_t)(end - suffix);
    char *option = option_of(suffix, len);
    const bool always =
        (len == 1 && (*suffix == 'y' || *suffix == 'm')) || (len == 4 && !strncmp(suffix, "objs", 4));
    for (const char *at = equals + 1; option || always;) {
        at += strspn(at, " \t");
        const size_t word = strcspn(at, " \t");
        if (!word)
            break;
        const struct makefile_word w = {base, at, (size_t)(dash - base), word, option};
        if (is_object(&w))
            found(arg, &w);
        at += word;
    }
    free(option);
}

/* Lines that end with a backslash go on; what follows # is a comment. */
void makefile_words_find(const char *text, makefile_word_found found, void *arg)
{
    struct buf line = BUF_INIT;
    while (*text) {
        size_t len = strcspn(text, "\n");
        const bool goes_on = len && text[len - 1] == '\\';
        buf_add(&line, text, len - goes_on);
        buf_addch(&line, ' ');
        text += len + (text[len] == '\n');
        if (goes_on)
            continue;
        line.data[strcspn(line.data, "#")] = '\0';
        take_line(line.data, found, arg);
        buf_reset(&line);
    }
    buf_release(&line);
}
