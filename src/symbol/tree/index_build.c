/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "symbol/tree/c_functions.h"
#include "symbol/tree/index_file.h"
#include "symbol/tree/makefile_words.h"
#include "symbol/tree/tree_files.h"

struct build {
    struct VEC(struct source_function) functions;
    struct VEC(uint32_t) files;
    struct VEC(struct source_word) words;
    struct buf texts;
    struct map by_text;
    char version[64];
    uint32_t folder; /* of the Makefile that is read; a text */
    bool full;       /* the texts are too many: the source is none */
};

uint64_t index_hash(uint64_t hash, const void *bytes, size_t len)
{
    for (const unsigned char *at = bytes; len; at++, len--)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

static uint32_t text_of(struct build *b, const char *text, size_t len)
{
    bool added;
    if (b->texts.len + len > INDEX_TEXTS_MAX) {
        b->full = true;
        return 0;
    }
    const size_t at = map_put(&b->by_text, text, len, b->texts.len, &added);
    if (added) {
        buf_add(&b->texts, text, len);
        buf_addch(&b->texts, '\0');
    }
    return (uint32_t)at;
}

static void take_function(void *arg, const char *name, size_t len, uint32_t line)
{
    struct build *b = arg;
    *vec_push(&b->functions) = (struct source_function){
        (uint32_t)index_hash(INDEX_HASH, name, len), text_of(b, name, len), (uint32_t)b->files.len - 1, line};
}

static void take_word(void *arg, const struct makefile_word *w)
{
    struct build *b = arg;
    const char *option = w->option ? w->option : "";
    *vec_push(&b->words) =
        (struct source_word){b->folder, text_of(b, w->base, w->base_len), text_of(b, option, strlen(option)),
                             text_of(b, w->text, w->len)};
}

/* "VERSION = 6", at the beginning of a line. */
static unsigned number_of(const char *makefile, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = makefile; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (!strncmp(at, name, len) && (at[len] == ' ' || at[len] == '='))
            return (unsigned)strtoul(at + len + strspn(at + len, " ="), NULL, 10);
    }
    return 0;
}

static void take_version(struct build *b, const char *makefile)
{
    const unsigned version = number_of(makefile, "VERSION");
    if (version)
        snprintf(b->version, sizeof(b->version), "%u.%u.%u", version, number_of(makefile, "PATCHLEVEL"),
                 number_of(makefile, "SUBLEVEL"));
}

/* Of a Makefile beside a Kbuild, the words are taken, too: arch/x86/Makefile has some. */
static void take_file(void *arg, const char *path, const char *text, size_t len)
{
    struct build *b = arg;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!strcmp(path, "Makefile"))
        take_version(b, text);
    if (!strcmp(name, "Makefile") || !strcmp(name, "Kbuild")) {
        b->folder = text_of(b, path, (size_t)(name - path));
        makefile_words_find(text, take_word, b);
        return;
    }
    *vec_push(&b->files) = text_of(b, path, strlen(path));
    c_functions_find(text, len, take_function, b);
}

static int by_hash(const void *a, const void *b)
{
    const struct source_function *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->name != y->name ? (x->name < y->name ? -1 : 1) : 0;
}

static void compose(struct build *b, struct buf *out, const char *source, uint64_t identity)
{
    struct index_header h = {.magic = INDEX_MAGIC,
                             .identity = identity,
                             .functions = (uint32_t)b->functions.len,
                             .files = (uint32_t)b->files.len,
                             .words = (uint32_t)b->words.len};
    h.source = text_of(b, source, strlen(source));
    h.version = text_of(b, b->version, strlen(b->version));
    h.texts_bytes = (uint32_t)b->texts.len;
    buf_add(out, &h, sizeof(h));
    buf_add(out, b->functions.at, b->functions.len * sizeof(*b->functions.at));
    buf_add(out, b->files.at, b->files.len * sizeof(*b->files.at));
    buf_add(out, b->words.at, b->words.len * sizeof(*b->words.at));
    buf_add(out, b->texts.data, b->texts.len);
    h.checksum = index_hash(INDEX_HASH, out->data + sizeof(h), out->len - sizeof(h));
    memcpy(out->data, &h, sizeof(h));
}

int index_build(struct buf *out, const char *source, uint64_t identity, struct error *e)
{
    struct build b = {.full = false};
    text_of(&b, "", 0);
    int bad = tree_files_read(source, take_file, &b, e);
    if (!bad && (b.full || b.functions.len > UINT32_MAX / 64))
        bad = error_set(e, EFBIG, "%s has too many functions for a kernel", source);
    if (!bad && b.functions.len)
        qsort(b.functions.at, b.functions.len, sizeof(*b.functions.at), by_hash);
    if (!bad)
        compose(&b, out, source, identity);
    vec_release(&b.functions);
    vec_release(&b.files);
    vec_release(&b.words);
    buf_release(&b.texts);
    map_release(&b.by_text);
    return bad;
}
