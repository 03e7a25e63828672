/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/tag_accounts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct sum {
    uint64_t allocated_calls, allocated_bytes, released_calls, released_bytes;
    uint64_t peak_bytes, peak_high_bytes;
};

/* Returns the most bytes that any shard allocated between two updates of the peak, or the bytes that this shard has
 * allocated since the last update if these are more (see struct ledger_tag). */
static uint64_t between(const struct ledger_tag *t, unsigned shard, uint64_t allocated)
{
    uint32_t since = (uint32_t)allocated - t->looked_bytes[shard];
    return since > t->between_bytes ? since : t->between_bytes;
}

/* Adds up all shards of an account. */
static struct sum sum_of(const struct ledger_copy *c, const struct ledger_tag *t)
{
    uint32_t account = t->account;
    const struct ledger_accounts *block =
        ledger_copy_at(c, LEDGER_ACCOUNTS, struct ledger_accounts, account / LEDGER_ACCOUNTS_TOGETHER);
    struct sum sum = {0};
    for (unsigned i = 0; i < LEDGER_ACCOUNT_SHARDS; i++) {
        const struct ledger_words *w = &block->words[i][account % LEDGER_ACCOUNTS_TOGETHER];
        sum.allocated_calls += ledger_count_calls(w->allocated);
        sum.allocated_bytes += ledger_count_bytes(w->allocated);
        sum.released_calls += ledger_count_calls(w->released);
        sum.released_bytes += ledger_count_bytes(w->released);
        if (ledger_count_calls(w->allocated))
            sum.peak_high_bytes += between(t, i, ledger_count_bytes(w->allocated));
    }
    int64_t live = (int64_t)(sum.allocated_bytes - sum.released_bytes);
    sum.peak_bytes = live > (int64_t)t->peak_bytes ? (uint64_t)live : t->peak_bytes;
    sum.peak_high_bytes += t->peak_bytes;
    if (sum.peak_high_bytes < sum.peak_bytes)
        sum.peak_high_bytes = sum.peak_bytes;
    return sum;
}

static bool is_sound(const struct ledger_copy *c, const struct ledger_tag *t)
{
    return t->account / LEDGER_ACCOUNTS_TOGETHER < c->count[LEDGER_ACCOUNTS] &&
           (t->module == LEDGER_NONE || t->module < c->count[LEDGER_MODULES]);
}

/* Returns the key of a tag, as set_keys() in src/tag/tag_ledger.c computes it. */
static uint64_t key_of(const struct ledger_copy *c, const struct ledger_tag *t)
{
    if (t->module == LEDGER_NONE)
        return ledger_action_key("", 0, t->code);
    const struct ledger_module *m = ledger_copy_at(c, LEDGER_MODULES, struct ledger_module, t->module);
    const char *path = account_modules_text(c, m->path);
    return m->build_id_len && m->build_id_len <= LEDGER_BUILD_ID_BYTES
               ? ledger_action_key(m->build_id, m->build_id_len, t->code)
               : ledger_action_key(path, strlen(path), t->code);
}

static void add_row(struct tags_reading *r, const struct ledger_copy *c, const struct ledger_tag *t,
                    struct alloc_texts *texts)
{
    struct sum sum = sum_of(c, t);
    if (!r->idle && !sum.allocated_calls && !sum.released_calls && !t->failed)
        return; /* a place of the parent that this fork child never used, or a place that was always off */
    struct object_faults_sum faults = {0};
    if (r->faults)
        faults = object_faults_of(r->faults, ledger_index_of(t->account, LEDGER_ACCOUNTS_TOGETHER));
    *vec_push(&r->key) = key_of(c, t);
    *vec_push(&r->account) = t->account;
    *vec_push(&r->filed) = false;
    *vec_push(&r->module) = t->module;
    *vec_push(&r->rows) = (struct account_row){
        .key = {.class = alloc_texts_put_string(texts, account_modules_text(c, t->class)),
                .name = alloc_texts_put_string(texts, account_modules_text(c, t->name)),
                .file = alloc_texts_put_string(texts, account_modules_text(c, t->file)),
                .line = t->line,
                .module = alloc_texts_put_string(
                    texts, t->module == LEDGER_NONE ? "" : r->modules.at[t->module].path),
                .comm = alloc_texts_put_string(texts, r->process.comm)},
        .copies = 1,
        .code = t->code,
        .of[ACCOUNT_AFTER] = {.of = {[ACCOUNT_ALLOCATED_CALLS] = sum.allocated_calls,
                                     [ACCOUNT_ALLOCATED_BYTES] = sum.allocated_bytes,
                                     [ACCOUNT_RELEASED_CALLS] = sum.released_calls,
                                     [ACCOUNT_RELEASED_BYTES] = sum.released_bytes,
                                     [ACCOUNT_FAILED] = t->failed,
                                     [ACCOUNT_PEAK_BYTES] = sum.peak_bytes,
                                     [ACCOUNT_PEAK_HIGH_BYTES] = sum.peak_high_bytes},
                              .faults = {[ACCOUNT_MINOR] = faults.minor,
                                         [ACCOUNT_MAJOR] = faults.major,
                                         [ACCOUNT_SHARED] = faults.shared},
                              .places = 1,
                              .inexact = t->unseen != 0}};
}

void tags_from_copy(struct tags_reading *r, const struct ledger_copy *c, struct alloc_texts *texts)
{
    const struct ledger_header *h = &c->header;
    struct account_process *p = &r->process;
    p->image_id = h->image_id;
    p->began_ns = h->began_realtime_ns;
    memcpy(p->comm, h->comm, sizeof(h->comm));
    p->losses[ACCOUNT_LOST_PLACES] = h->losses[LEDGER_LOST_TAGS];
    p->losses[ACCOUNT_LOST_OBJECTS] = h->losses[LEDGER_LOST_TAGGED];
    p->losses[ACCOUNT_LOST_FREES] = h->losses[LEDGER_LOST_TAGGED_FREES];
    p->losses[ACCOUNT_LOST_VERSIONS] = h->losses[LEDGER_LOST_TAG_VERSIONS];
    account_modules_read(&r->modules, c);
    for (uint64_t i = 0; i < c->count[LEDGER_TAGS]; i++) {
        const struct ledger_tag *tag = ledger_copy_at(c, LEDGER_TAGS, struct ledger_tag, i);
        if (!tag->account)
            continue; /* the record is being written */
        if (is_sound(c, tag))
            add_row(r, c, tag, texts);
        else
            p->losses[ACCOUNT_LOST_RECORDS]++;
    }
}

void tags_reading_release(struct tags_reading *r)
{
    account_modules_release(&r->modules);
    vec_release(&r->module);
    vec_release(&r->key);
    vec_release(&r->account);
    vec_release(&r->filed);
    vec_release(&r->rows);
}
