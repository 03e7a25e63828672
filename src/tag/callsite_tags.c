/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/callsite_tags.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/sigsafe/atomic.h"
#include "tag/tag_ledger.h"
#include "unwind/module.h"

#define CALLERS 16384u /* a power of two */
#define TRIES   64u

struct caller {
    struct tag_ledger_far far;
    const char *returns_to;
    /* The unwinder's number of the module with the call. A reloaded library has the same number only if unchanged. */
    uint32_t module;
};

/* These tags are in the memory of liballium.so: their `control` is the offset of the allium_control_page of
 * liballium.so, not of the control page of the module that makes the call. */
static struct caller records[CALLERS];
static uint32_t used, buckets[2 * CALLERS];
/* A bit for each hash of a return address: a call from there was counted as LEDGER_LOST_TAGS. */
static uint32_t left_out[CALLERS / 32];

static int32_t number_at(const char *p)
{
    int32_t n;
    __builtin_memcpy(&n, p, sizeof(n));
    return n;
}

/* If the code at `target` is a PLT entry, returns the address to which the entry jumps; else returns `target`. */
static const char *through_plt(const char *target)
{
    const char *p = target;
    if (!__builtin_memcmp(p, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
        p += 4;
    if (*p == '\xf2') /* bnd */
        p++;
    return p[0] == '\xff' && p[1] == '\x25' ? *(const char *const *)(p + 6 + number_at(p + 2)) : target;
}

extern const char allium_control_page[] __attribute__((visibility("hidden")));

static const char *place_of(const char *returns_to, const char *entry, const struct dl_find_object *found)
{
    const char *start = found->dlfo_map_start, *end = found->dlfo_map_end, *target = entry;
    if (!entry || returns_to - start < 6)
        return returns_to - 1;
    const char *at = returns_to + number_at(returns_to - 4);
    if (returns_to[-5] == '\xe8' && at >= start && end - at > 16) /* call at */
        target = through_plt(at);
    else if (returns_to[-6] == '\xff' && returns_to[-5] == '\x15' && at >= start && end - at > 8)
        /* call *at */
        target = *(const char *const *)at;
    return target == entry ? returns_to - 1 : target;
}

static void describe(struct caller *c, const char *code, const char *text)
{
    struct allium_tag *t = &c->far.tag;
    *t = (struct allium_tag){.version = TAG_LEDGER_FAR, .state = -1, .counters = ALLIUM_TAG_UNREGISTERED};
    t->control = (int32_t)(allium_control_page - (const char *)&t->control);
    c->far.code = code;
    c->far.text = text;
}

static uint32_t bucket_of(uint32_t hash, uint32_t probe)
{
    return (hash + probe) % (2 * CALLERS);
}

static bool is_current(const struct caller *c)
{
    return module_is_current(c->module, (uintptr_t)c->returns_to - 1);
}

/* Returns the tag of the call with this return address; NULL: it has no tag yet. */
static struct allium_tag *known(const char *returns_to, uint32_t hash)
{
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t number = load_acquire(&buckets[bucket_of(hash, i)]);
        if (!number)
            return NULL;
        struct caller *c = &records[number - 1];
        if (c->returns_to == returns_to && is_current(c))
            return &c->far.tag;
    }
    return NULL;
}

static struct allium_tag *add(const char *returns_to, uint32_t hash, const void *entry, const char *text)
{
    struct dl_find_object found;
    uint32_t module = module_find((uintptr_t)returns_to - 1), mine = 0;
    if (module == MODULE_NONE || _dl_find_object((void *)((uintptr_t)returns_to - 1), &found))
        return NULL;
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t *bucket = &buckets[bucket_of(hash, i)], number = load_acquire(bucket);
        if (!number && !mine) {
            if (load_relaxed(&used) >= CALLERS)
                break;
            mine = __atomic_add_fetch(&used, 1, __ATOMIC_RELAXED);
            if (mine > CALLERS)
                break;
            describe(&records[mine - 1], place_of(returns_to, entry, &found), text);
            records[mine - 1].returns_to = returns_to;
            records[mine - 1].module = module;
        }
        if (!number &&
            __atomic_compare_exchange_n(bucket, &number, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            number = mine;
        const struct caller *c = &records[number - 1];
        if (c->returns_to == returns_to && c->module == module)
            return &records[number - 1].far.tag;
    }
    return NULL;
}

/* Counts a call instruction without a tag as lost, at most once in a process. If two share a bit, counts only one. */
static void count_left_out(uint32_t hash)
{
    hash +=
        process.generation * 7919u; /* a fork child has inherited the bits of its parent: it uses others */
    uint32_t bit = 1u << hash % 32;
    if (!(__atomic_fetch_or(&left_out[hash / 32 % (CALLERS / 32)], bit, __ATOMIC_RELAXED) & bit))
        tag_ledger_count_loss(LEDGER_LOST_TAGS);
}

struct allium_tag *callsite_tag(const void *returns_to, const void *entry, const char *text)
{
    uint32_t hash = (uint32_t)((uintptr_t)returns_to * 0x9e3779b97f4a7c15u >> 40);
    struct allium_tag *tag = known(returns_to, hash);
    if (!tag)
        tag = add(returns_to, hash, entry, text);
    if (!tag && process_has_ledger())
        count_left_out(hash);
    return tag;
}
