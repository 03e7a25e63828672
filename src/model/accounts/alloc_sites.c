/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/accounts/alloc_sites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

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

/* ---- sums ---- */

int64_t alloc_bytes_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

uint64_t alloc_calls_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

int64_t alloc_bytes_change(const struct alloc_row *row)
{
    int64_t before = row->of[ALLOC_BEFORE].bytes, change;
    if (__builtin_sub_overflow(row->of[ALLOC_AFTER].bytes, before, &change))
        return before < 0 ? INT64_MAX : INT64_MIN;
    return change;
}

int64_t alloc_calls_change(const struct alloc_row *row)
{
    uint64_t before = row->of[ALLOC_BEFORE].calls, after = row->of[ALLOC_AFTER].calls;
    uint64_t more = after - before, less = before - after;
    if (after >= before)
        return more > INT64_MAX ? INT64_MAX : (int64_t)more;
    return less > INT64_MAX ? INT64_MIN : -(int64_t)less;
}

static void add(struct alloc_sum *to, const struct alloc_sum *from)
{
    to->bytes = alloc_bytes_add(to->bytes, from->bytes);
    to->calls = alloc_calls_add(to->calls, from->calls);
    to->sites += from->sites;
    to->inexact += from->inexact;
}

struct alloc_sum alloc_rows_total(const struct alloc_rows *r, enum alloc_moment moment)
{
    struct alloc_sum total = {0};
    vec_each (const struct alloc_row, row, &r->all)
        add(&total, &row->of[moment]);
    return total;
}

/* ---- rows ---- */

static struct alloc_row *row_of(struct alloc_rows *r, const struct alloc_key *key)
{
    bool added;
    size_t at = map_put(&r->by_key, key, sizeof(*key), r->all.len, &added);
    if (added)
        vec_push(&r->all)->key = *key;
    return &r->all.at[at];
}

/* The kernel's lists have most sites once; one of them that comes again counts once, and holds what both do. */
void alloc_rows_add(struct alloc_rows *r, const struct alloc_sites *sites, enum alloc_moment moment)
{
    vec_each (const struct alloc_site, s, sites) {
        struct alloc_sum *sum = &row_of(r, &s->key)->of[moment];
        sum->bytes = alloc_bytes_add(sum->bytes, s->bytes);
        sum->calls = alloc_calls_add(sum->calls, s->calls);
        sum->sites = 1;
        sum->inexact |= s->inexact;
    }
}

void alloc_rows_release(struct alloc_rows *r)
{
    vec_release(&r->all);
    map_release(&r->by_key);
}

uint32_t alloc_texts_directory(struct alloc_texts *texts, uint32_t file)
{
    const char *path = alloc_texts_get(texts, file), *slash = path ? strrchr(path, '/') : NULL;
    if (!path)
        return ALLOC_NO_TEXT;
    if (!slash)
        return alloc_texts_put(texts, ".", 1);
    char *copy = mem_strndup(path, slash == path ? 1 : (size_t)(slash - path)); /* texts may move */
    uint32_t text = alloc_texts_put(texts, copy, strlen(copy));
    free(copy);
    return text;
}

static struct alloc_key coarser(const struct alloc_key *key, enum alloc_group group)
{
    switch (group) {
    case ALLOC_BY_FILE:
    case ALLOC_BY_DIRECTORY:
        return (struct alloc_key){.file = key->file};
    case ALLOC_BY_MODULE:
        return (struct alloc_key){.module = key->module};
    case ALLOC_BY_FUNCTION:
        return (struct alloc_key){.module = key->module, .function = key->function};
    default:
        return *key;
    }
}

void alloc_rows_group(struct alloc_rows *to, const struct alloc_rows *from, enum alloc_group group,
                      struct alloc_texts *texts)
{
    struct VEC(uint32_t) directories = {0}; /* of each file, once it was asked for */
    vec_each (const struct alloc_row, row, &from->all) {
        struct alloc_key key = coarser(&row->key, group);
        if (group == ALLOC_BY_DIRECTORY) {
            while (directories.len <= key.file)
                *vec_push(&directories) = UINT32_MAX;
            uint32_t *directory = &directories.at[key.file];
            if (*directory == UINT32_MAX)
                *directory = alloc_texts_directory(texts, key.file);
            key.file = *directory;
        }
        struct alloc_row *sum = row_of(to, &key);
        add(&sum->of[ALLOC_BEFORE], &row->of[ALLOC_BEFORE]);
        add(&sum->of[ALLOC_AFTER], &row->of[ALLOC_AFTER]);
    }
    vec_release(&directories);
}

/* The rows are no longer found by their keys then: nothing is added any more. */
static void drop(struct alloc_rows *r, bool (*keeps)(const struct alloc_row *row, void *arg), void *arg)
{
    size_t kept = 0;
    vec_each (const struct alloc_row, row, &r->all)
        if (keeps(row, arg))
            r->all.at[kept++] = *row;
    r->all.len = kept;
    map_release(&r->by_key);
}

static bool is_changed(const struct alloc_row *row, void *arg)
{
    (void)arg;
    return alloc_bytes_change(row) || alloc_calls_change(row);
}

void alloc_rows_keep_changed(struct alloc_rows *r)
{
    drop(r, is_changed, NULL);
}

/* ---- queries ---- */

enum field { FUNC, PATH, DIR, MODULE, LINE, SIZE, CALLS, AVERAGE, ACCURATE };

static const struct query_field fields[] = {
    [FUNC] = {"func", QUERY_TEXT, "the function"},
    [PATH] = {"file", QUERY_PATH, "the source file"},
    [DIR] = {"dir", QUERY_PATH, "its directory, and each one above that"},
    [MODULE] = {"module", QUERY_TEXT, "the kernel module; of what is built in there is none"},
    [LINE] = {"line", QUERY_NUMBER, "the line of the file"},
    [SIZE] = {"size", QUERY_SIZE, "bytes held"},
    [CALLS] = {"calls", QUERY_NUMBER, "calls whose memory is held"},
    [AVERAGE] = {"average", QUERY_SIZE, "bytes of one"},
    [ACCURATE] = {"accurate", QUERY_TEXT, "yes or no"},
};

struct subject {
    const struct alloc_row *row;
    const struct alloc_texts *texts;
};

int alloc_query_parse(struct query **q, const char *text, struct error *e)
{
    return query_parse(q, text, fields, sizeof(fields) / sizeof(*fields), e, NULL);
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

static void look_up(void *subject, size_t field, struct query_probe *probe)
{
    const struct subject *s = subject;
    const struct alloc_key *key = &s->row->key;
    const struct alloc_sum *sum = &s->row->of[ALLOC_AFTER];
    switch ((enum field)field) {
    case FUNC:
        query_offer_text(probe, alloc_texts_get(s->texts, key->function));
        break;
    case PATH:
        query_offer_text(probe, alloc_texts_get(s->texts, key->file));
        break;
    case DIR:
        alloc_offer_directories(alloc_texts_get(s->texts, key->file), probe);
        break;
    case MODULE:
        query_offer_text(probe, alloc_texts_get(s->texts, key->module));
        break;
    case LINE:
        query_offer_number(probe, key->line);
        break;
    case SIZE:
        query_offer_number(probe, sum->bytes);
        break;
    case CALLS:
        query_offer_number(probe, sum->calls > INT64_MAX ? INT64_MAX : (int64_t)sum->calls);
        break;
    case AVERAGE:
        if (sum->calls)
            query_offer_number(probe, llrint((double)sum->bytes / (double)sum->calls));
        break;
    case ACCURATE:
        query_offer_text(probe,
                         s->row->of[ALLOC_BEFORE].inexact || s->row->of[ALLOC_AFTER].inexact ? "no" : "yes");
        break;
    }
}

struct rules {
    const struct query *query;
    const struct alloc_texts *texts;
};

static bool fits(const struct alloc_row *row, void *arg)
{
    const struct rules *a = arg;
    struct subject s = {row, a->texts};
    return query_match(a->query, look_up, &s);
}

void alloc_rows_keep(struct alloc_rows *r, const struct query *q, const struct alloc_texts *texts)
{
    struct rules a = {q, texts};
    drop(r, fits, &a);
}
