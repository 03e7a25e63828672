/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/tree/source_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symbol/tree/index_file.h"

struct source_index {
    char *bytes;
    struct index_header h;
    const struct source_function *functions;
    const uint32_t *files;
    const struct source_word *words;
    const char *texts;
};

/* ---- a file's bytes ---- */

static bool texts_are_whole(const struct source_index *s)
{
    const uint32_t n = s->h.texts_bytes;
    if (!n || s->texts[n - 1] || *s->texts || s->h.source >= n || s->h.version >= n)
        return false;
    for (uint32_t i = 0; i < s->h.functions; i++)
        if (s->functions[i].name >= n || s->functions[i].file >= s->h.files ||
            (i && s->functions[i].hash < s->functions[i - 1].hash))
            return false;
    for (uint32_t i = 0; i < s->h.files; i++)
        if (s->files[i] >= n)
            return false;
    for (uint32_t i = 0; i < s->h.words; i++) {
        const struct source_word *w = &s->words[i];
        if (w->folder >= n || w->base >= n || w->option >= n || w->text >= n)
            return false;
    }
    return true;
}

int source_index_parse(struct source_index **out, void *bytes, size_t len)
{
    struct source_index *s = mem_alloc(sizeof(*s));
    *s = (struct source_index){.bytes = bytes};
    *out = s;
    const bool has_header = len >= sizeof(s->h);
    if (has_header)
        memcpy(&s->h, bytes, sizeof(s->h));
    const uint64_t functions = (uint64_t)s->h.functions * sizeof(*s->functions),
                   files = (uint64_t)s->h.files * sizeof(*s->files),
                   words = (uint64_t)s->h.words * sizeof(*s->words);
    if (has_header && !memcmp(s->h.magic, INDEX_MAGIC, sizeof(INDEX_MAGIC)) &&
        sizeof(s->h) + functions + files + words + s->h.texts_bytes == len &&
        index_hash(INDEX_HASH, s->bytes + sizeof(s->h), len - sizeof(s->h)) == s->h.checksum) {
        char *at = s->bytes + sizeof(s->h);
        s->functions = (const void *)at;
        s->files = (const void *)(at + functions);
        s->words = (const void *)(at + functions + files);
        s->texts = at + functions + files + words;
        if (texts_are_whole(s))
            return 0;
    }
    source_index_free(s);
    *out = NULL;
    return -EBADMSG;
}

void source_index_free(struct source_index *s)
{
    if (!s)
        return;
    free(s->bytes);
    free(s);
}

bool source_index_is_of(const struct source_index *s, const char *source, uint64_t identity)
{
    return s->h.identity == identity && !strcmp(s->texts + s->h.source, source);
}

/* ---- what it has ---- */

const char *source_index_version(const struct source_index *s)
{
    return s->texts + s->h.version;
}

const char *source_index_text(const struct source_index *s, uint32_t text)
{
    return s->texts + text;
}

const char *source_index_file(const struct source_index *s, uint32_t file)
{
    return s->texts + s->files[file];
}

size_t source_index_files(const struct source_index *s)
{
    return s->h.files;
}

size_t source_index_functions(const struct source_index *s)
{
    return s->h.functions;
}

const struct source_word *source_index_words(const struct source_index *s, size_t *n)
{
    *n = s->h.words;
    return s->words;
}

/* Names with the same hash are next to one another, and equal ones, too. */
const struct source_function *source_index_find(const struct source_index *s, const char *name, size_t *n)
{
    const uint32_t hash = (uint32_t)index_hash(INDEX_HASH, name, strlen(name));
    uint32_t low = 0, high = s->h.functions;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->functions[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < s->h.functions && s->functions[low].hash == hash &&
           strcmp(s->texts + s->functions[low].name, name) != 0)
        low++;
    if (low == s->h.functions || s->functions[low].hash != hash)
        return NULL;
    const struct source_function *first = &s->functions[low];
    for (*n = 0; low + *n < s->h.functions && first[*n].name == first->name;)
        ++*n;
    return first;
}
