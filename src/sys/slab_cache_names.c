/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/slab_cache_names.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/slab.h"

struct name {
    char text[SLAB_NAME_BYTES]; /* "": not known */
};

struct cache_names {
    struct VEC(struct name) by_number;
};

struct cache_names *slab_cache_names_new(void)
{
    return mem_alloc(sizeof(struct cache_names));
}

void slab_cache_names_free(struct cache_names *n)
{
    if (!n)
        return;
    vec_release(&n->by_number);
    free(n);
}

static void add(void *arg, const void *key, const void *value)
{
    struct cache_names *n = arg;
    uint32_t number;
    memcpy(&number, value, sizeof(number));
    /* Numbers are given away in turn, but some are lost where two CPUs meet a name at once. */
    if (!number || number > 2 * SLAB_NAMES_MOST)
        return;
    while (n->by_number.len <= number)
        *vec_push(&n->by_number) = (struct name){""};
    char *text = n->by_number.at[number].text;
    memcpy(text, key, SLAB_NAME_BYTES);
    text[SLAB_NAME_BYTES - 1] = '\0';
}

static const char *known(const struct cache_names *n, uint32_t number)
{
    const char *text = number < n->by_number.len ? n->by_number.at[number].text : "";
    return *text ? text : NULL;
}

const char *slab_cache_names_find(struct cache_names *n, struct sys_session *s, uint32_t number)
{
    if (number && !known(n, number))
        sys_each(s, "cache_names", add, n);
    return known(n, number);
}
