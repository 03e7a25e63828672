/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/text/column_choice.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"

#define BLANKS " \t"

const char *column_choice_next(const char **list, size_t *len)
{
    const char *name = *list + strspn(*list, BLANKS ",");
    *len = strcspn(name, ",");
    *list = name + *len;
    while (*len && strchr(BLANKS, name[*len - 1]))
        --*len;
    return *len ? name : NULL;
}

void column_choice_add(struct column_choice *c, const char *list)
{
    size_t len;
    for (const char *name; (name = column_choice_next(&list, &len));) {
        struct buf text = BUF_INIT;
        buf_add(&text, name, len);
        *vec_push(&c->names) = (struct column_choice_name){.text = buf_detach(&text)};
    }
}

/* "SINCE BOOT, /s" is named without what follows the comma. */
static bool is_named(const char *heading, const char *name)
{
    for (; *name && *heading; name++, heading++)
        if (tolower((unsigned char)*name) != tolower((unsigned char)*heading) &&
            !(strchr(" _-", *name) && strchr(" _-", *heading)))
            return false;
    return !*name && (!*heading || *heading == ',');
}

bool column_choice_has(const struct column_choice *c, const char *heading)
{
    vec_each (struct column_choice_name, name, &c->names)
        if (is_named(heading, name->text))
            return true;
    return false;
}

void column_choice_note(struct column_choice *c, const char *heading)
{
    vec_each (struct column_choice_name, name, &c->names)
        name->found |= is_named(heading, name->text);
    vec_each (char *, known, &c->headings)
        if (!strcmp(*known, heading))
            return;
    if (*heading)
        *vec_push(&c->headings) = mem_strdup(heading);
}

const char *column_choice_missing(const struct column_choice *c)
{
    vec_each (struct column_choice_name, name, &c->names)
        if (c->any_table && !name->found)
            return name->text;
    return NULL;
}

void column_choice_release(struct column_choice *c)
{
    vec_each (struct column_choice_name, name, &c->names)
        free(name->text);
    vec_each (char *, heading, &c->headings)
        free(*heading);
    vec_release(&c->names);
    vec_release(&c->headings);
}
