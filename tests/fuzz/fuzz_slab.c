/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/slab: whatever slabinfo and the links say, each cache is found by each of its names, and
 * no name leads to two. The bytes before the first NUL are slabinfo, those behind it links: NAME, NUL, WHERE, NUL.
 */
#include "require.h"

#include "collect/kernel/slabinfo.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text up to a NUL or the end, cut to fit. */
static void take_text(const uint8_t **at, const uint8_t *end, char out[SLAB_NAME_BYTES])
{
    size_t len = strnlen((const char *)*at, (size_t)(end - *at));
    size_t kept = len < SLAB_NAME_BYTES ? len : SLAB_NAME_BYTES - 1;
    memcpy(out, *at, kept);
    out[kept] = '\0';
    *at += len < (size_t)(end - *at) ? len + 1 : len;
}

static void check_caches(const struct slab_caches *s)
{
    size_t names = 0;
    vec_each (const struct slab_cache, c, &s->all) {
        size_t len = strlen(c->name);
        require(len && len < SLAB_NAME_BYTES && !strpbrk(c->name, " \t\r\n\033"), "a name that is none: %s",
                c->name);
        require(slab_find(s, c->name) == c, "another cache of the name %s", c->name);
        require(c->objects_per_slab && c->pages_per_slab, "a slab of nothing");
        for (size_t i = 0; i < c->aliases_len; i++)
            require(slab_find(s, c->aliases[i]) == c, "another cache of the name %s", c->aliases[i]);
        names += 1 + c->aliases_len;
    }
    require(names == s->by_name.len, "%zu names, not %zu", names, s->by_name.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size;
    struct slab_caches s = {.bad_lines = 0};
    struct slab_links links = {0};
    char *text = mem_strndup((const char *)data, size);
    at += strlen(text) < size ? strlen(text) + 1 : size;
    int bad = slab_parse(&s, text);
    require(!bad || (bad == -EPROTO && !s.all.len), "it failed half way");
    while (at < end) {
        struct slab_link *link = vec_push(&links);
        take_text(&at, end, link->name);
        take_text(&at, end, link->unique);
    }
    slab_add_links(&s, &links);
    check_caches(&s);
    vec_release(&links);
    slab_release(&s);
    free(text);
    return 0;
}
