/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/accounts/alloc_texts.h"

#include <stdlib.h>
#include <string.h>

uint32_t alloc_texts_put(struct alloc_texts *t, const char *bytes, size_t len)
{
    bool added;
    size_t number = map_put(&t->by_text, bytes, len, t->at.len + 1, &added);
    if (added) {
        *vec_push(&t->at) = t->bytes.len;
        buf_add(&t->bytes, bytes, len);
        buf_addch(&t->bytes, '\0');
    }
    return (uint32_t)number;
}

uint32_t alloc_texts_put_string(struct alloc_texts *t, const char *text)
{
    return *text ? alloc_texts_put(t, text, strlen(text)) : ALLOC_NO_TEXT;
}

const char *alloc_texts_get(const struct alloc_texts *t, uint32_t text)
{
    return text == ALLOC_NO_TEXT ? NULL : t->bytes.data + t->at.at[text - 1];
}

void alloc_texts_release(struct alloc_texts *t)
{
    map_release(&t->by_text);
    buf_release(&t->bytes);
    vec_release(&t->at);
}

uint32_t alloc_texts_directory(struct alloc_texts *texts, uint32_t file)
{
    const char *path = alloc_texts_get(texts, file), *slash = path ? strrchr(path, '/') : NULL;
    if (!path)
        return ALLOC_NO_TEXT;
    if (!slash)
        return alloc_texts_put(texts, ".", 1);
    /* A copy, because alloc_texts_put() may move the texts. */
    char *copy = mem_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    uint32_t text = alloc_texts_put(texts, copy, strlen(copy));
    free(copy);
    return text;
}

void alloc_offer_directories(const char *path, struct query_probe *probe)
{
    char *directory = path ? mem_strdup(path) : NULL;
    bool holds = false;
    for (char *slash; directory && !holds && (slash = strrchr(directory, '/'));) {
        slash[slash == directory] = '\0';
        holds = query_offer_text(probe, directory);
        if (slash == directory)
            break;
    }
    if (path && !strchr(path, '/'))
        query_offer_text(probe, ".");
    free(directory);
}
