/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/ranges.h"

#include "account/reserve.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/draw.h"
#include "base/sigsafe/sys.h"
#include "wire/objects.h"

#define WAITS 100000 /* turns of others */

static struct ranges *ranges;
static __thread bool inside __attribute__((tls_model("initial-exec")));

static struct ranges *table(void)
{
    struct ranges *have = load_acquire(&ranges);
    if (have)
        return have;
    struct ranges *mine = reserve_memory(sizeof(*mine), true);
    if (mine &&
        !__atomic_compare_exchange_n(&ranges, &have, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        reserve_release(mine, sizeof(*mine));
        return have;
    }
    return mine;
}

static bool lock(struct ranges *r)
{
    if (inside)
        return false;
    inside = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (int n = 0; n < WAITS; n++) {
        uint32_t open = 0;
        if (__atomic_compare_exchange_n(&r->locked, &open, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
        sys_call(SYS_sched_yield, 0);
    }
    inside = false;
    return false;
}

static void unlock(struct ranges *r)
{
    store_release(&r->locked, 0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    inside = false;
}

/* Where the link to the first node is that ends behind the address. */
static uint32_t *find(struct ranges *r, uintptr_t address)
{
    uint32_t *at = &r->root, *best = NULL;
    while (*at) {
        struct ranges_node *n = &r->node[*at];
        if (n->end > address)
            best = at, at = &n->left;
        else
            at = &n->right;
    }
    return best;
}

static void insert(struct ranges *r, uint32_t number)
{
    struct ranges_node *n = &r->node[number];
    uint32_t *at = &r->root, *left = &n->left, *right = &n->right;
    while (*at && r->node[*at].priority >= n->priority)
        at = n->start < r->node[*at].start ? &r->node[*at].left : &r->node[*at].right;
    uint32_t below = *at;
    *at = number;
    while (below) {
        struct ranges_node *b = &r->node[below];
        if (b->start < n->start)
            *left = below, left = &b->right, below = *left;
        else
            *right = below, right = &b->left, below = *right;
    }
    *left = *right = 0;
}

static void unlink_node(struct ranges *r, uint32_t *at)
{
    uint32_t number = *at, a = r->node[number].left, b = r->node[number].right;
    while (a && b)
        if (r->node[a].priority > r->node[b].priority)
            *at = a, at = &r->node[a].right, a = *at;
        else
            *at = b, at = &r->node[b].left, b = *at;
    *at = a ? a : b;
    r->node[number].left = r->vacant_node;
    r->vacant_node = number;
}

/* 0: there is no room. */
static uint32_t new_node(struct ranges *r, uintptr_t start, uintptr_t end, uint32_t mapping)
{
    uint32_t number = r->vacant_node;
    if (number)
        r->vacant_node = r->node[number].left;
    else if (r->nodes + 1 < RANGES_NODES)
        number = ++r->nodes;
    else
        return 0;
    uint32_t priority = (uint32_t)(draw_next(&r->seed) >> 32);
    r->node[number] =
        (struct ranges_node){.start = start, .end = end, .priority = priority, .mapping = mapping};
    r->mapping[mapping].parts++;
    return number;
}

static uint32_t new_mapping(struct ranges *r, uint32_t account)
{
    uint32_t number = r->vacant_mapping;
    if (number)
        r->vacant_mapping = r->mapping[number].account;
    else if (r->mappings + 1 < RANGES_NODES)
        number = ++r->mappings;
    else
        return 0;
    r->mapping[number] = (struct ranges_mapping){.account = account};
    return number;
}

/* One part less; true: it was the last. */
static bool leave_mapping(struct ranges *r, uint32_t number)
{
    struct ranges_mapping *m = &r->mapping[number];
    if (--m->parts)
        return false;
    m->account = r->vacant_mapping;
    r->vacant_mapping = number;
    return true;
}

static enum ranges_answer add(struct ranges *r, uintptr_t start, uintptr_t end, uint32_t mapping)
{
    uint32_t node = mapping ? new_node(r, start, end, mapping) : 0;
    if (node)
        insert(r, node);
    return node ? RANGES_DONE : RANGES_BUSY;
}

const void *ranges_table(void)
{
    return load_acquire(&ranges);
}

bool ranges_any(void)
{
    const struct ranges *r = load_acquire(&ranges);
    return r && load_relaxed(&r->root);
}

enum ranges_answer ranges_enter(uintptr_t start, uintptr_t end, uint32_t account)
{
    struct ranges *r = table();
    if (!r || !lock(r))
        return RANGES_BUSY;
    enum ranges_answer answer = add(r, start, end, new_mapping(r, account));
    unlock(r);
    return answer;
}

enum ranges_answer ranges_put_back(const struct range *part)
{
    struct ranges *r = load_acquire(&ranges);
    if (!r || !lock(r))
        return RANGES_BUSY;
    const struct ranges_mapping *m = &r->mapping[part->mapping];
    bool alone = part->last || !m->parts || m->account != part->account;
    enum ranges_answer answer =
        add(r, part->start, part->end, alone ? new_mapping(r, part->account) : part->mapping);
    unlock(r);
    return answer;
}

/* Cuts [start, end) out of the node that `at` leads to, which has it; false: that makes two of it, and there is no room. */
static bool cut(struct ranges *r, uint32_t *at, uintptr_t start, uintptr_t end, bool *last)
{
    struct ranges_node *n = &r->node[*at];
    *last = false;
    if (start == n->start && end == n->end) {
        *last = leave_mapping(r, n->mapping);
        unlink_node(r, at);
    } else if (start == n->start) {
        n->start = end; /* the order stays */
    } else if (end == n->end) {
        n->end = start;
    } else {
        uint32_t behind = new_node(r, end, n->end, n->mapping);
        if (!behind)
            return false;
        n->end = start;
        insert(r, behind);
    }
    return true;
}

enum ranges_answer ranges_take(uintptr_t start, uintptr_t end, struct range *part)
{
    enum ranges_answer answer = RANGES_NONE;
    struct ranges *r = load_acquire(&ranges);
    if (!r || !load_relaxed(&r->root))
        return RANGES_NONE;
    if (!lock(r))
        return RANGES_BUSY;
    uint32_t *at = find(r, start);
    if (at && r->node[*at].start < end) {
        const struct ranges_node *n = &r->node[*at];
        *part = (struct range){.start = n->start > start ? n->start : start,
                               .end = n->end < end ? n->end : end,
                               .account = r->mapping[n->mapping].account,
                               .mapping = n->mapping};
        answer = cut(r, at, part->start, part->end, &part->last) ? RANGES_DONE : RANGES_BUSY;
    }
    unlock(r);
    return answer;
}
