/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/import/allocinfo_import.h"

#include "collect/accounts/allocinfo.h"

static const char *text_of(const struct alloc_texts *texts, uint32_t number)
{
    const char *text = alloc_texts_get(texts, number);
    return text ? text : "";
}

int allocinfo_import_read(struct kernel_import *i, const char *text, size_t len, uint64_t written_ns,
                          struct error *e)
{
    struct accounts a = {.rows = {0}};
    struct alloc_texts texts = {.at = {0}};
    struct kernel_capture *c = kernel_import_capture(i);
    int bad = allocinfo_parse(&a, &texts, text, len, e);
    vec_each (const struct account_row, row, &a.rows) {
        const uint64_t *of = row->of[ACCOUNT_AFTER].of;
        /* A sum of counters that are read one after the other may be less than 0. */
        const int64_t bytes = (int64_t)of[ACCOUNT_ALLOCATED_BYTES];
        const struct symbol_frame place = {.function = text_of(&texts, row->key.function),
                                           .file = text_of(&texts, row->key.file),
                                           .line = row->key.line};
        if (bytes <= 0 && !of[ACCOUNT_ALLOCATED_CALLS])
            continue;
        const uint64_t call = kernel_import_place(i, &place, text_of(&texts, row->key.module));
        const uint64_t held = bytes > 0 ? (uint64_t)bytes : 0;
        kernel_import_counts(i)->broken +=
            !kmem_accounts_hold(c->accounts, &(struct kmem_held){.call_site = call,
                                                                 .cache = "",
                                                                 .objects = of[ACCOUNT_ALLOCATED_CALLS],
                                                                 .bytes = held,
                                                                 .requested_bytes = held});
    }
    kernel_import_counts(i)->broken += a.text.bad_lines;
    c->comms = false;
    c->no_ages = true;
    kernel_import_time(i, written_ns);
    kernel_import_end(i, 0);
    accounts_release(&a);
    alloc_texts_release(&texts);
    return bad;
}
