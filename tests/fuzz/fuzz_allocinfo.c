/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/accounts/allocinfo and what is made of it: whatever the file says, each line is a
 * row, a bad one or none; groups have the sums of their sites; and what is written again is read back with the
 * same numbers.
 */
#include "require.h"

#include "collect/accounts/allocinfo.h"
#include "model/accounts/allocinfo_table.h"
#include "view/formats/allocinfo_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_site(const struct alloc_texts *texts, const struct account_row *s)
{
    const char *file = alloc_texts_get(texts, s->key.file), *module = alloc_texts_get(texts, s->key.module);
    const char *function = alloc_texts_get(texts, s->key.function);
    require(file && *file && !strchr(file, '\n'), "a file that is none");
    require(function && *function && !strchr(function, '\n'), "a function that is none");
    require(!module || (*module && !strpbrk(module, "\n[")), "a module that is none");
}

static bool same(const struct account_sum *a, const struct account_sum *b)
{
    return a->of[ACCOUNT_ALLOCATED_CALLS] == b->of[ACCOUNT_ALLOCATED_CALLS] && a->places == b->places &&
           a->inexact == b->inexact && a->of[ACCOUNT_ALLOCATED_BYTES] == b->of[ACCOUNT_ALLOCATED_BYTES];
}

static void check_groups(const struct accounts *a, struct alloc_texts *texts)
{
    static const enum account_group groups[] = {ACCOUNT_BY_FILE, ACCOUNT_BY_DIRECTORY, ACCOUNT_BY_MODULE,
                                                ACCOUNT_BY_MODULE_FUNCTION};
    struct account_rows sites = {0};
    account_rows_join(&sites, NULL, a, ACCOUNT_PART_FUNCTION);
    struct account_sum total = account_rows_total(&sites, ACCOUNT_AFTER);
    require(total.places == sites.len && total.places <= a->rows.len, "more sites than there are");
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
        struct account_rows rows = {0};
        account_rows_group(&rows, &sites, groups[i], texts);
        struct account_sum sum = account_rows_total(&rows, ACCOUNT_AFTER);
        require(same(&sum, &total), "another sum, by group %d", (int)groups[i]);
        vec_release(&rows);
    }
    vec_release(&sites);
}

static void write_again(const struct accounts *a, const struct alloc_texts *texts, struct buf *text)
{
    struct sink out = sink_to_buf(text);
    allocinfo_write_head(&out);
    vec_each (const struct account_row, s, &a->rows) {
        struct allocinfo_row row = {.bytes = allocinfo_bytes(s, ACCOUNT_AFTER),
                                    .calls = s->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS],
                                    .file = alloc_texts_get(texts, s->key.file),
                                    .line = s->key.line,
                                    .module = alloc_texts_get(texts, s->key.module),
                                    .function = alloc_texts_get(texts, s->key.function),
                                    .accurate = !s->of[ACCOUNT_AFTER].inexact};
        allocinfo_write_row(&out, &row);
    }
}

static void check_round_trip(const struct accounts *a, struct alloc_texts *texts)
{
    struct buf text = BUF_INIT;
    struct accounts again;
    struct error e = {""};
    write_again(a, texts, &text);
    require(!allocinfo_parse(&again, texts, text.data, text.len, &e), "not read back: %s", e.text);
    require(!again.text.bad_lines && !again.text.cut && again.rows.len == a->rows.len,
            "other rows are read back");
    for (size_t i = 0; i < a->rows.len; i++) {
        const struct account_row *x = &a->rows.at[i], *y = &again.rows.at[i];
        const struct account_sum *was = &x->of[ACCOUNT_AFTER], *is = &y->of[ACCOUNT_AFTER];
        require(!memcmp(was->of, is->of, sizeof(was->of)) && x->key.line == y->key.line &&
                    was->inexact <= is->inexact,
                "other numbers are read back");
    }
    accounts_release(&again);
    buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct accounts a;
    struct error e = {""};
    char *text = mem_alloc(size); /* of just these bytes, so that none behind them is read unseen */
    memcpy(text, data, size);
    int bad = allocinfo_parse(&a, &texts, text, size, &e);
    require(!bad || (bad == -EPROTO && !a.rows.len && *e.text), "it failed half way");
    require(bad || a.rows.len + a.text.bad_lines < a.text.lines, "more rows than lines");
    vec_each (const struct account_row, s, &a.rows)
        check_site(&texts, s);
    if (!bad) {
        check_groups(&a, &texts);
        check_round_trip(&a, &texts);
    }
    accounts_release(&a);
    alloc_texts_release(&texts);
    free(text);
    return 0;
}
