/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/mmap_ranges.h"

#include <stddef.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/draw.h"
#include "target/process_image.h"
#include "target/spin_wait.h"
#include "target/vm_reserve.h"
#include "wire/object_map_layout.h"

#define TABLES 4u

/*
 * If fork() runs in a signal handler that interrupted a change of the table, the child goes on with that change as soon
 * as the handler returns. This child uses the next table, so what the interrupted code still writes does no harm.
 */
static struct table {
    struct ranges *ranges;
    struct vm_array nodes, mappings;
} tables[TABLES] = {
    [0 ... TABLES - 1] = {.nodes = {.record_bytes = sizeof(struct ranges_node), .most = RANGES_NODES},
                          .mappings = {.record_bytes = sizeof(struct ranges_mapping), .most = RANGES_NODES}}};
static uint32_t current; /* index of the table of this process */
static bool abandoned; /* a thread waited in vain: longjmp() has probably left the code that holds the lock */
static __thread bool holds_lock __attribute__((tls_model("initial-exec")));

static struct table *table(void)
{
    return &tables[load_relaxed(&current)];
}

/* Returns the table of ranges; makes it if there is none. NULL: there is no memory. */
static struct ranges *make(struct table *t)
{
    struct ranges *have = load_acquire(&t->ranges);
    if (have)
        return have;
    struct ranges *mine = vm_reserve(sizeof(*mine), true);
    if (mine && !vm_reserve_open(mine, offsetof(struct ranges, mapping))) {
        vm_reserve_release(mine, sizeof(*mine));
        return NULL;
    }
    if (mine &&
        !__atomic_compare_exchange_n(&t->ranges, &have, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        vm_reserve_release(mine, sizeof(*mine));
        return have;
    }
    return mine;
}

static bool lock(struct ranges *r)
{
    struct spin_wait w = {0};
    if (holds_lock)
        return false;
    holds_lock = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    do {
        uint32_t open = 0;
        if (__atomic_compare_exchange_n(&r->locked, &open, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    } while (!load_relaxed(&abandoned) && spin_wait_turn(&w, !vm_reserve_is_sealed()));
    store_relaxed(&abandoned, true);
    holds_lock = false;
    return false;
}

static void unlock(struct ranges *r)
{
    store_relaxed(&abandoned, false);
    store_release(&r->locked, 0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    holds_lock = false;
}

/* Returns the link that leads to the first range that ends above the address; NULL: there is none. */
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

static uint32_t unlink_node(struct ranges *r, uint32_t *at)
{
    uint32_t number = *at, a = r->node[number].left, b = r->node[number].right;
    while (a && b)
        if (r->node[a].priority > r->node[b].priority)
            *at = a, at = &r->node[a].right, a = *at;
        else
            *at = b, at = &r->node[b].left, b = *at;
    *at = a ? a : b;
    return number;
}

static void vacate(struct ranges *r, uint32_t number)
{
    r->node[number].left = r->vacant_node;
    r->vacant_node = number;
}

/* Returns the number of a new node, which is not in the tree yet; 0: there is no room. */
static uint32_t new_node(struct table *t, uintptr_t start, uintptr_t end, uint32_t mapping)
{
    struct ranges *r = t->ranges;
    uint32_t number = r->vacant_node;
    if (number)
        r->vacant_node = r->node[number].left;
    else if (r->nodes + 1 < RANGES_NODES && vm_array_reach(&t->nodes, r->node, r->nodes + 1))
        number = ++r->nodes;
    else
        return 0;
    uint32_t priority = (uint32_t)(draw_next(&r->seed) >> 32);
    r->node[number] =
        (struct ranges_node){.start = start, .end = end, .priority = priority, .mapping = mapping};
    r->mapping[mapping].parts++;
    return number;
}

static uint32_t new_mapping(struct table *t, uint32_t account)
{
    struct ranges *r = t->ranges;
    uint32_t number = r->vacant_mapping;
    if (number)
        r->vacant_mapping = r->mapping[number].account;
    else if (r->mappings + 1 < RANGES_NODES && vm_array_reach(&t->mappings, r->mapping, r->mappings + 1))
        number = ++r->mappings;
    else
        return 0;
    r->mapping[number] = (struct ranges_mapping){.account = account};
    return number;
}

/* Decrements the number of parts of a mapping. True: no part is left, and the mapping's record is unused now. */
static bool leave_mapping(struct ranges *r, uint32_t number)
{
    struct ranges_mapping *m = &r->mapping[number];
    if (--m->parts)
        return false;
    m->account = r->vacant_mapping;
    r->vacant_mapping = number;
    return true;
}

void mmap_ranges_reset(void)
{
    if (holds_lock) {
        store_relaxed(&current, (current + 1) % TABLES);
        holds_lock = false; /* it was for the other table */
    }
    struct ranges *r = load_acquire(&table()->ranges);
    if (r)
        __builtin_memset(r, 0, offsetof(struct ranges, mapping));
}

const void *mmap_ranges_table(void)
{
    return load_acquire(&table()->ranges);
}

bool mmap_ranges_any(void)
{
    const struct ranges *r = load_acquire(&table()->ranges);
    return r && load_relaxed(&r->root);
}

enum mmap_ranges_answer mmap_ranges_enter(uintptr_t start, uintptr_t end, uint32_t account)
{
    struct table *t = table();
    struct ranges *r = make(t);
    if (!r || !lock(r))
        return MMAP_RANGES_BUSY;
    uint32_t mapping = new_mapping(t, account), node = mapping ? new_node(t, start, end, mapping) : 0;
    if (node)
        insert(r, node);
    unlock(r);
    return node ? MMAP_RANGES_DONE : MMAP_RANGES_BUSY;
}

/*
 * Cuts [start, end) out of the node to which the link `at` leads, and returns the part of the range that was cut out as
 * a node that is not in the tree. 0: there is no room for another node, and the range is unchanged.
 */
static uint32_t cut(struct table *t, uint32_t *at, uintptr_t start, uintptr_t end)
{
    struct ranges *r = t->ranges;
    struct ranges_node *n = &r->node[*at];
    if (start <= n->start && n->end <= end)
        return unlink_node(r, at);
    start = start > n->start ? start : n->start;
    end = end < n->end ? end : n->end;
    uint32_t part = new_node(t, start, end, n->mapping), behind = 0;
    if (!part)
        return 0;
    if (start == n->start) {
        n->start = end; /* ranges do not overlap, so the tree is still in order */
        return part;
    }
    if (end < n->end && !(behind = new_node(t, end, n->end, n->mapping))) {
        r->mapping[n->mapping].parts--;
        vacate(r, part);
        return 0;
    }
    n->end = start;
    if (behind)
        insert(r, behind);
    return part;
}

enum mmap_ranges_answer mmap_ranges_take(uintptr_t start, uintptr_t end, struct mmap_ranges_taken *taken)
{
    struct table *t = table();
    struct ranges *r = load_acquire(&t->ranges);
    uint32_t *at, *link = &taken->first;
    bool room = true;
    *taken = (struct mmap_ranges_taken){0};
    if (!r || !load_relaxed(&r->root))
        return MMAP_RANGES_NONE;
    if (!lock(r))
        return MMAP_RANGES_BUSY;
    taken->generation = process.generation;
    while (room && (at = find(r, start)) && r->node[*at].start < end) {
        *link = cut(t, at, start, end);
        room = *link;
        link = &r->node[*link].left;
        *link = 0;
    }
    taken->account = r->mapping[r->node[taken->first].mapping].account;
    unlock(r);
    return !room ? MMAP_RANGES_BUSY : taken->first ? MMAP_RANGES_DONE : MMAP_RANGES_NONE;
}

/* Returns the first node of the list; 0: it is empty, or the list of the parent of this fork child. */
static uint32_t first_of(const struct mmap_ranges_taken *taken)
{
    return taken->generation == process.generation ? taken->first : 0;
}

bool mmap_ranges_unmapped(const struct mmap_ranges_taken *taken, ranges_count_fn count)
{
    struct ranges *r = load_acquire(&table()->ranges);
    if (!r || !first_of(taken))
        return true;
    if (!lock(r))
        return false;
    /* once more, under the lock: meanwhile a signal handler may have forked */
    for (uint32_t number = first_of(taken), next; number; number = next) {
        const struct ranges_node *n = &r->node[number];
        uint32_t account = r->mapping[n->mapping].account;
        next = n->left;
        count(account, n->end - n->start, leave_mapping(r, n->mapping));
        vacate(r, number);
    }
    unlock(r);
    return true;
}

bool mmap_ranges_put_back(const struct mmap_ranges_taken *taken)
{
    struct ranges *r = load_acquire(&table()->ranges);
    if (!r || !first_of(taken))
        return true;
    if (!lock(r))
        return false;
    /* once more, under the lock: meanwhile a signal handler may have forked */
    for (uint32_t number = first_of(taken), next; number; number = next) {
        next = r->node[number].left;
        insert(r, number);
    }
    unlock(r);
    return true;
}
