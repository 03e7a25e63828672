/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/tags.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define DELETED " (deleted)"

static const char *text_of(const struct ledger_copy *c, uint32_t string)
{
    return string < c->count[LEDGER_STRINGS] ? ledger_copy_at(c, LEDGER_STRINGS, char, string) : "";
}

/* What all shards of an account add up to. */
static struct ledger_words sum_of(const struct ledger_copy *c, uint32_t account)
{
    const struct ledger_accounts *block =
        ledger_copy_at(c, LEDGER_ACCOUNTS, struct ledger_accounts, account / LEDGER_ACCOUNTS_TOGETHER);
    struct ledger_words sum = {0};
    for (unsigned i = 0; i < LEDGER_ACCOUNT_SHARDS; i++) {
        const struct ledger_words *w = &block->words[i][account % LEDGER_ACCOUNTS_TOGETHER];
        sum.made_calls += w->made_calls;
        sum.made_bytes += w->made_bytes;
        sum.gone_calls += w->gone_calls;
        sum.gone_bytes += w->gone_bytes;
    }
    return sum;
}

static bool is_sound(const struct ledger_copy *c, const struct ledger_tag *t)
{
    return t->account / LEDGER_ACCOUNTS_TOGETHER < c->count[LEDGER_ACCOUNTS] &&
           (t->module == LEDGER_NONE || t->module < c->count[LEDGER_MODULES]);
}

static void add_row(struct tags *out, const struct ledger_copy *c, const struct ledger_tag *t)
{
    struct ledger_words sum = sum_of(c, t->account);
    if (!sum.made_calls && !sum.gone_calls && !t->failed)
        return; /* of a parent's place that its fork child has not reached */
    const struct tags_module *m = t->module == LEDGER_NONE ? NULL : &out->modules.at[t->module];
    struct tags_row r = {.class = mem_strdup(text_of(c, t->class)),
                         .name = mem_strdup(text_of(c, t->name)),
                         .file = mem_strdup(text_of(c, t->file)),
                         .function = mem_strdup(""),
                         .module = mem_strdup(m ? m->path : ""),
                         .line = t->line,
                         .of_module = t->module,
                         .code = t->code,
                         .copies = 1,
                         .made_calls = sum.made_calls,
                         .made_bytes = sum.made_bytes,
                         .gone_calls = sum.gone_calls,
                         .gone_bytes = sum.gone_bytes,
                         .failed = t->failed};
    *vec_push(&out->rows) = r;
}

static void add_module(struct tags *out, const struct ledger_copy *c, uint32_t number)
{
    const struct ledger_module *of = ledger_copy_at(c, LEDGER_MODULES, struct ledger_module, number);
    struct tags_module m = {.path = mem_strdup(text_of(c, of->path))};
    char *deleted = strstr(m.path, DELETED);
    if (deleted)
        *deleted = '\0';
    if (of->build_id_len <= LEDGER_BUILD_ID_BYTES)
        m.build_id_len = of->build_id_len;
    memcpy(m.build_id, of->build_id, m.build_id_len);
    *vec_push(&out->modules) = m;
}

void tags_from_copy(struct tags *t, const struct ledger_copy *c)
{
    memcpy(t->comm, c->header.comm, sizeof(c->header.comm));
    t->unkept_tags = c->header.losses[LEDGER_LOST_SAMPLES];
    t->unkept_objects = c->header.losses[LEDGER_LOST_LIVE];
    t->unseen_frees = c->header.losses[LEDGER_LOST_FREES_UNSEEN];
    for (uint32_t i = 0; i < c->count[LEDGER_MODULES]; i++)
        add_module(t, c, i);
    for (uint64_t i = 0; i < c->count[LEDGER_TAGS]; i++) {
        const struct ledger_tag *tag = ledger_copy_at(c, LEDGER_TAGS, struct ledger_tag, i);
        if (!tag->account)
            continue; /* being entered */
        if (is_sound(c, tag))
            add_row(t, c, tag);
        else
            t->damaged++;
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct tags_row *x = a, *y = b;
    int order = strcmp(x->module, y->module);
    order = order ? order : strcmp(x->file, y->file);
    order = order ? order : (x->line > y->line) - (x->line < y->line);
    order = order ? order : strcmp(x->class, y->class);
    order = order ? order : strcmp(x->name, y->name);
    return order || x->line ? order : strcmp(x->function, y->function); /* where no line tells places apart */
}

static void release_row(struct tags_row *r)
{
    free(r->class);
    free(r->name);
    free(r->file);
    free(r->function);
    free(r->module);
}

/* Of a template's copies the function is the first one's, by its letters. */
void tags_merge(struct tags *t)
{
    size_t kept = 0;
    if (!t->rows.len)
        return;
    qsort(t->rows.at, t->rows.len, sizeof(*t->rows.at), compare_rows);
    for (size_t i = 0; i < t->rows.len; i++) {
        struct tags_row *r = &t->rows.at[i], *into = kept ? &t->rows.at[kept - 1] : NULL;
        if (!into || compare_rows(into, r)) {
            t->rows.at[kept++] = *r;
            continue;
        }
        into->copies++;
        into->made_calls += r->made_calls;
        into->made_bytes += r->made_bytes;
        into->gone_calls += r->gone_calls;
        into->gone_bytes += r->gone_bytes;
        into->failed += r->failed;
        release_row(r);
    }
    t->rows.len = kept;
}

void tags_release(struct tags *t)
{
    vec_each (struct tags_row, r, &t->rows)
        release_row(r);
    vec_each (struct tags_module, m, &t->modules)
        free(m->path);
    vec_release(&t->rows);
    vec_release(&t->modules);
}
