/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/source_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"

static bool is_file(const char *text, size_t len)
{
    char *name = mem_strndup(text, len);
    struct stat st;
    bool found = len && !stat(name, &st);
    free(name);
    return found;
}

/* Returns whether the text is the name of a file, or such a name and @TIME. */
static bool names_file(const char *text, size_t len)
{
    const char *at = memrchr(text, '@', len);
    return is_file(text, len) || (at && is_file(text, (size_t)(at - text)));
}

/* Returns the length of the first source of the text. */
static size_t first_length(const char *text)
{
    size_t first = strcspn(text, ","), found = first;
    for (size_t len = first;; len += 1 + strcspn(text + len + 1, ",")) {
        if (names_file(text, len))
            found = len;
        if (!text[len])
            return found;
    }
}

int source_list_split(struct source_list *l, const char *text, struct error *e)
{
    *l = (struct source_list){.label = NULL};
    for (const char *at = text;; at++) {
        size_t len = first_length(at);
        if (!len && *text)
            return error_set(e, EINVAL, "%s: a source is missing %s a comma: write A,B,C without blanks",
                             text, *at ? "before" : "behind");
        *vec_push(&l->texts) = mem_strndup(at, len);
        at += len;
        if (!*at)
            return 0;
    }
}

int source_list_open(struct source_list *l, struct error *e)
{
    struct buf label = BUF_INIT;
    int bad = 0;
    l->sources = mem_array(l->texts.len, sizeof(*l->sources));
    l->profiles = mem_array(l->texts.len, sizeof(*l->profiles));
    for (size_t i = 0; i < l->texts.len && !bad; i++) {
        bad = source_open_figures(&l->sources[i], l->texts.at[i], e);
        l->profiles[i] = l->sources[i].profile;
        if (!bad)
            buf_printf(&label, "%s%s", i ? ", " : "", l->sources[i].label);
    }
    l->label = buf_detach(&label);
    return bad;
}

void source_list_release(struct source_list *l)
{
    for (size_t i = 0; l->sources && i < l->texts.len; i++)
        source_release(&l->sources[i]);
    vec_each (char *, text, &l->texts)
        free(*text);
    vec_release(&l->texts);
    free(l->sources);
    free(l->profiles);
    free(l->label);
    *l = (struct source_list){.label = NULL};
}
