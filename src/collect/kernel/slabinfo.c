/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/slabinfo.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void slab_release(struct slab_caches *s)
{
    vec_each (char *, name, &s->kept)
        free(*name);
    vec_each (const char **, list, &s->lists)
        free(*list);
    vec_release(&s->kept);
    vec_release(&s->lists);
    vec_release(&s->all);
    map_release(&s->by_name);
}

static const char *store_text(struct slab_caches *s, const char *name, size_t len)
{
    return *vec_push(&s->kept) = mem_strndup(name, len);
}

const struct slab_cache *slab_find(const struct slab_caches *s, const char *name)
{
    size_t at = map_get(&s->by_name, name, strlen(name));
    return at == MAP_NONE ? NULL : &s->all.at[at];
}

/* ---- /proc/slabinfo ---- */

/* Returns the length of the cache's name at the beginning of the line; 0 if there is no valid name. */
static size_t name_length(const char *line)
{
    size_t len = 0;
    while (isgraph((unsigned char)line[len]))
        len++;
    return line[len] == ' ' && len < SLAB_NAME_BYTES ? len : 0;
}

/* Reads a decimal number after blanks. Returns false if there is none, or if it needs more than 64 bits. */
static bool take_number(const char **at, uint64_t *out)
{
    const char *digits = *at + strspn(*at, " ");
    char *end;
    if (digits == *at || !isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    *out = strtoull(digits, &end, 10);
    *at = end;
    return !errno;
}

/* Parses "kmalloc-64  3200 3264 64 64 1 : tunables 0 0 0 : slabdata 51 51 0". Returns false if the line is invalid. */
static bool parse_row(const char *line, struct slab_cache *c, size_t *name_len)
{
    uint64_t active_slabs;
    const char *at = line + (*name_len = name_length(line));
    if (!*name_len)
        return false;
    uint64_t *const fields[] = {&c->active, &c->objects, &c->stride_bytes, &c->objects_per_slab,
                                &c->pages_per_slab};
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (!take_number(&at, fields[i]))
            return false;
    at = strstr(at, ": slabdata");
    at = at ? at + strlen(": slabdata") : "";
    return take_number(&at, &active_slabs) && take_number(&at, &c->slabs) && c->objects_per_slab &&
           c->pages_per_slab;
}

static void take_row(struct slab_caches *s, const char *line)
{
    size_t len;
    bool added;
    struct slab_cache c = {0};
    if (!parse_row(line, &c, &len)) {
        s->bad_lines++;
        return;
    }
    map_put(&s->by_name, line, len, s->all.len, &added);
    if (!added) { /* a second cache of this name: events have only the name, so the first one stands for both */
        s->bad_lines++;
        return;
    }
    c.name = store_text(s, line, len);
    *vec_push(&s->all) = c;
}

int slab_parse(struct slab_caches *s, const char *text)
{
    if (strncmp(text, SLAB_HEAD, strlen(SLAB_HEAD)) != 0)
        return -EPROTO;
    for (const char *at = strchr(text, '\n'), *end; at && *++at; at = end) {
        end = strchr(at, '\n');
        char *line = mem_strndup(at, end ? (size_t)(end - at) : strlen(at));
        if (line[0] != '#')
            take_row(s, line);
        free(line);
    }
    return 0;
}

/* ---- /sys/kernel/slab ---- */

static int by_unique(const void *a, const void *b)
{
    const struct slab_link *x = a, *y = b;
    int order = strcmp(x->unique, y->unique);
    return order ? order : strcmp(x->name, y->name);
}

/* Stores the names of one cache, to which the links first[0..n) lead. One of the names has the row in slabinfo; the
 * others are its aliases. */
static void add_aliases(struct slab_caches *s, const struct slab_link *first, size_t n)
{
    size_t owner = MAP_NONE;
    for (size_t i = 0; i < n && owner == MAP_NONE; i++)
        owner = map_get(&s->by_name, first[i].name, strlen(first[i].name));
    if (owner == MAP_NONE || s->all.at[owner].aliases)
        return;
    const char **list = *vec_push(&s->lists) = mem_array(n, sizeof(*list));
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        bool added;
        map_put(&s->by_name, first[i].name, strlen(first[i].name), owner, &added);
        if (added)
            list[len++] = store_text(s, first[i].name, strlen(first[i].name));
    }
    s->all.at[owner].aliases = list;
    s->all.at[owner].aliases_len = len;
}

void slab_add_links(struct slab_caches *s, struct slab_links *links)
{
    if (links->len)
        qsort(links->at, links->len, sizeof(*links->at), by_unique);
    for (size_t i = 0, n; i < links->len; i += n) {
        for (n = 1; i + n < links->len && !strcmp(links->at[i].unique, links->at[i + n].unique);)
            n++;
        add_aliases(s, &links->at[i], n);
    }
}
