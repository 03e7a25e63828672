/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/site_accounts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Adds up all shards of a site. Returns false if the ledger has no sums for it. */
static bool sum_of(struct account_sum *sum, const struct ledger_copy *c, uint64_t site)
{
    *sum = (struct account_sum){.places = 1};
    if (site / LEDGER_SITES_TOGETHER >= c->count[LEDGER_SITE_SUMS])
        return false;
    const struct ledger_site_sums *block =
        ledger_copy_at(c, LEDGER_SITE_SUMS, struct ledger_site_sums, site / LEDGER_SITES_TOGETHER);
    for (unsigned i = 0; i < LEDGER_ACCOUNT_SHARDS; i++) {
        const struct ledger_site_words *w = &block->words[i][site % LEDGER_SITES_TOGETHER];
        sum->of[ACCOUNT_ALLOCATED_CALLS] += w->allocated_calls;
        sum->of[ACCOUNT_ALLOCATED_BYTES] += w->allocated_bytes;
        sum->of[ACCOUNT_ALLOCATED_USABLE] += w->allocated_usable_bytes;
        sum->of[ACCOUNT_RELEASED_CALLS] += w->released_calls;
        sum->of[ACCOUNT_RELEASED_BYTES] += w->released_bytes;
        sum->of[ACCOUNT_RELEASED_USABLE] += w->released_usable_bytes;
        sum->of[ACCOUNT_FREED_BY_SITE_CALLS] += w->freed_calls;
        sum->of[ACCOUNT_FREED_BY_SITE_BYTES] += w->freed_bytes;
    }
    return true;
}

static bool is_nothing(const struct account_sum *sum)
{
    for (int i = 0; i < ACCOUNT_COUNTERS; i++)
        if (sum->of[i])
            return false;
    return true;
}

/* Like place_of(), for a tag. *code is one byte behind the code of the tag, because name_module() in
 * site_accounts_read.c subtracts 1, as from a return address. */
static bool place_of_tag(const struct ledger_copy *c, uint32_t account, uint32_t *module, uint64_t *code)
{
    if (account >= c->count[LEDGER_TAGS])
        return false;
    const struct ledger_tag *t = ledger_copy_at(c, LEDGER_TAGS, struct ledger_tag, account);
    *module = t->module;
    *code = t->module == LEDGER_NONE ? 0 : t->code + 1;
    return t->module == LEDGER_NONE || t->module < c->count[LEDGER_MODULES];
}

/* Finds the code of a site: its module (LEDGER_NONE: outside every module) and its address in the file. Returns false
 * if the record is invalid. */
static bool place_of(const struct ledger_copy *c, const struct ledger_site *s, uint32_t *module,
                     uint64_t *code)
{
    *module = LEDGER_NONE;
    *code = 0;
    if (s->tag)
        return place_of_tag(c, s->tag, module, code);
    if (s->frame == LEDGER_NONE)
        return true;
    if (s->frame >= c->count[LEDGER_FRAMES])
        return false;
    uint64_t frame = *ledger_copy_at(c, LEDGER_FRAMES, uint64_t, s->frame);
    uint32_t of = (uint32_t)(frame >> LEDGER_FRAME_MODULE_SHIFT) & LEDGER_FRAME_MODULE_MASK;
    if (of == LEDGER_MODULE_UNKNOWN)
        return true;
    *module = of;
    *code = frame & LEDGER_FRAME_OFFSET_MASK;
    return of < c->count[LEDGER_MODULES];
}

/* Returns the key of a site, as src/agent/sites/site_rules.c computes it; 0: no rule can apply to the site. */
static uint64_t key_of(const struct ledger_copy *c, const struct ledger_site *s, uint32_t module,
                       uint64_t code)
{
    if (module == LEDGER_NONE || s->tag || s->flags & LEDGER_SITE_WRAPPER)
        return 0;
    const struct ledger_module *m = ledger_copy_at(c, LEDGER_MODULES, struct ledger_module, module);
    const char *path = account_modules_text(c, m->path);
    return m->build_id_len && m->build_id_len <= LEDGER_BUILD_ID_BYTES
               ? ledger_site_key(m->build_id, m->build_id_len, code)
               : ledger_site_key(path, strlen(path), code);
}

static void add_site(struct sites_reading *r, const struct ledger_copy *c, uint64_t number,
                     struct alloc_texts *texts)
{
    const struct ledger_site *s = ledger_copy_at(c, LEDGER_SITES, struct ledger_site, number);
    struct account_row row = {.copies = 1};
    struct account_sum *sum = &row.of[ACCOUNT_AFTER];
    uint32_t module;
    if (!sum_of(sum, c, number) || !place_of(c, s, &module, &row.code)) {
        r->process.losses[ACCOUNT_LOST_RECORDS]++;
        return;
    }
    sum->of[ACCOUNT_FAILED] = s->failed;
    if (r->faults) {
        struct object_faults_sum faults =
            object_faults_of(r->faults, ledger_index_of((uint32_t)number, LEDGER_SITES_TOGETHER));
        sum->faults[ACCOUNT_MINOR] = faults.minor;
        sum->faults[ACCOUNT_MAJOR] = faults.major;
        sum->faults[ACCOUNT_SHARED] = faults.shared;
    }
    if (is_nothing(sum) && !r->idle)
        return;
    sum->inexact = r->process.losses[ACCOUNT_LOST_OBJECTS] || r->process.losses[ACCOUNT_LOST_FREES];
    row.key.comm = alloc_texts_put_string(texts, r->process.comm);
    if (s->tag)
        row.key.class = alloc_texts_put_string(texts, SITES_TAG);
    if (module != LEDGER_NONE)
        row.key.module = alloc_texts_put_string(texts, r->modules.at[module].path);
    else
        row.key.function =
            alloc_texts_put_string(texts, number == LEDGER_SITE_OTHER ? SITES_OTHER : SITES_NO_MODULE);
    *vec_push(&r->module) = module;
    *vec_push(&r->by_wrapper) = s->wrapper != 0;
    *vec_push(&r->key) = key_of(c, s, module, row.code);
    *vec_push(&r->number) = (uint32_t)number;
    *vec_push(&r->rows) = row;
}

void sites_from_copy(struct sites_reading *r, const struct ledger_copy *c, struct alloc_texts *texts)
{
    const struct ledger_header *h = &c->header;
    struct account_process *p = &r->process;
    struct account_sum nobody;
    p->image_id = h->image_id;
    p->began_ns = h->began_realtime_ns;
    p->taken_ns = c->taken_realtime_ns;
    memcpy(p->comm, h->comm, sizeof(h->comm));
    r->kept = h->regions[LEDGER_SITES].limit_bytes != 0;
    if (!c->count[LEDGER_SITES] || !sum_of(&nobody, c, LEDGER_SITE_NOBODY))
        return;
    r->unfollowed = ledger_copy_at(c, LEDGER_SITES, struct ledger_site, LEDGER_SITE_NOBODY)->flags &
                    LEDGER_SITE_UNFOLLOWED;
    p->losses[ACCOUNT_LOST_OBJECTS] = nobody.of[ACCOUNT_ALLOCATED_CALLS];
    p->losses[ACCOUNT_LOST_FREES] = nobody.of[ACCOUNT_RELEASED_CALLS];
    p->losses[ACCOUNT_FOREIGN_FREES] = nobody.of[ACCOUNT_FREED_BY_SITE_CALLS];
    account_modules_read(&r->modules, c);
    for (uint64_t i = LEDGER_SITE_OTHER; i < c->count[LEDGER_SITES]; i++)
        add_site(r, c, i, texts);
}

void sites_reading_release(struct sites_reading *r)
{
    account_modules_release(&r->modules);
    vec_release(&r->module);
    vec_release(&r->by_wrapper);
    vec_release(&r->key);
    vec_release(&r->number);
    vec_release(&r->rows);
}
