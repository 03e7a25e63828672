/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/allocinfo and what is made of it: whatever the file says, each line is a row, a bad one or
 * none; groups have the sums of their sites; and what is written again is read back with the same numbers.
 */
#include "require.h"

#include "collect/accounts/allocinfo.h"
#include "view/formats/allocinfo_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_site(const struct alloc_texts *texts, const struct alloc_site *s)
{
    const char *file = alloc_texts_get(texts, s->key.file), *module = alloc_texts_get(texts, s->key.module);
    const char *function = alloc_texts_get(texts, s->key.function);
    require(file && *file && !strchr(file, '\n'), "a file that is none");
    require(function && *function && !strchr(function, '\n'), "a function that is none");
    require(!module || (*module && !strpbrk(module, "\n[")), "a module that is none");
}

static bool same(const struct alloc_sum *a, const struct alloc_sum *b)
{
    return a->calls == b->calls && a->sites == b->sites && a->inexact == b->inexact && a->bytes == b->bytes;
}

/* Sums that did not reach the end of what there is do not depend on the order. */
static bool is_far_from_ends(const struct alloc_listing *a)
{
    uint64_t bytes = 0, calls = 0;
    vec_each (const struct alloc_site, s, &a->sites)
        if (__builtin_add_overflow(bytes, s->bytes < 0 ? -(uint64_t)s->bytes : (uint64_t)s->bytes, &bytes) ||
            bytes > INT64_MAX || __builtin_add_overflow(calls, s->calls, &calls))
            return false;
    return true;
}

static void check_groups(const struct alloc_listing *a, struct alloc_texts *texts)
{
    struct alloc_rows sites = {.by_key = {0}};
    alloc_rows_add(&sites, &a->sites, ALLOC_AFTER);
    struct alloc_sum total = alloc_rows_total(&sites, ALLOC_AFTER);
    require(total.sites == sites.all.len && total.sites <= a->sites.len, "more sites than there are");
    for (enum alloc_group group = ALLOC_BY_SITE; group <= ALLOC_BY_FUNCTION && is_far_from_ends(a); group++) {
        struct alloc_rows rows = {.by_key = {0}};
        alloc_rows_group(&rows, &sites, group, texts);
        struct alloc_sum sum = alloc_rows_total(&rows, ALLOC_AFTER);
        require(same(&sum, &total), "another sum, by group %d", (int)group);
        alloc_rows_release(&rows);
    }
    alloc_rows_release(&sites);
}

static void write_again(const struct alloc_listing *a, const struct alloc_texts *texts, struct buf *text)
{
    struct sink out = sink_to_buf(text);
    allocinfo_write_head(&out);
    vec_each (const struct alloc_site, s, &a->sites) {
        struct allocinfo_row row = {.bytes = s->bytes,
                                    .calls = s->calls,
                                    .file = alloc_texts_get(texts, s->key.file),
                                    .line = s->key.line,
                                    .module = alloc_texts_get(texts, s->key.module),
                                    .function = alloc_texts_get(texts, s->key.function),
                                    .accurate = !s->inexact};
        allocinfo_write_row(&out, &row);
    }
}

static void check_round_trip(const struct alloc_listing *a, struct alloc_texts *texts)
{
    struct buf text = BUF_INIT;
    struct alloc_listing again;
    struct error e = {""};
    write_again(a, texts, &text);
    require(!allocinfo_parse(&again, texts, text.data, text.len, &e), "not read back: %s", e.text);
    require(!again.bad_lines && !again.cut && again.sites.len == a->sites.len, "other rows are read back");
    for (size_t i = 0; i < a->sites.len; i++) {
        const struct alloc_site *x = &a->sites.at[i], *y = &again.sites.at[i];
        require(x->bytes == y->bytes && x->calls == y->calls && x->key.line == y->key.line &&
                    x->inexact <= y->inexact,
                "other numbers are read back");
    }
    allocinfo_release(&again);
    buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct alloc_listing a;
    struct error e = {""};
    char *text = mem_alloc(size); /* of just these bytes, so that none behind them is read unseen */
    memcpy(text, data, size);
    int bad = allocinfo_parse(&a, &texts, text, size, &e);
    require(!bad || (bad == -EPROTO && !a.sites.len && *e.text), "it failed half way");
    require(bad || a.sites.len + a.bad_lines < a.lines, "more rows than lines");
    vec_each (const struct alloc_site, s, &a.sites)
        check_site(&texts, s);
    if (!bad) {
        check_groups(&a, &texts);
        check_round_trip(&a, &texts);
    }
    allocinfo_release(&a);
    alloc_texts_release(&texts);
    free(text);
    return 0;
}
