/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/recall.h"

#include <stddef.h>

#include "base/sigsafe/atomic.h"

#define TRY_EVERY 8u /* where one beginning leads to ever other stacks, keeping them all is in vain */

struct recall recall_entries[1u << RECALL_LOG2];

static bool begins_here(const struct recall *r, const struct walk_start *start, uint32_t generation)
{
    return r->pc == start->pc && r->sp == start->sp && r->generation == generation;
}

uint32_t recall_stack(const struct recall *r, const struct stack_bounds *bounds,
                      const struct walk_start *start, uint32_t generation)
{
    uint64_t version = load_acquire(&r->version), differ = (start->fp ^ r->fp) & r->fp_mask;
    uint32_t words = r->words, stack = r->stack;
    if (!begins_here(r, start, generation) || !words || words > RECALL_WORDS || version & 1 ||
        bounds->foreign_end || start->sp < bounds->low || start->sp >= bounds->high)
        return RECALL_NONE;
    uint64_t room = bounds->high - start->sp - sizeof(uint64_t);
    const char *sp = (const char *)start->sp;
    const uint32_t *offset = r->offset, *end = offset + words;
    for (const uint64_t *word = r->word; offset < end; offset++, word++) {
        uint64_t from_sp = load_relaxed(offset);
        if (unlikely(from_sp > room))
            return RECALL_NONE;
        differ |= *word ^ *(const uint64_t *)(sp + from_sp);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return differ || load_relaxed(&r->version) != version ? RECALL_NONE : stack;
}

static void write_words(struct recall *r, const struct walker *w, const struct walk_start *start)
{
    const uintptr_t *at[RECALL_WORDS];
    unsigned found = walk_words(w, start, at, RECALL_WORDS);
    r->words = 0;
    r->fp_mask = 0;
    for (unsigned i = 0; i < found; i++) {
        uint64_t offset = (uintptr_t)at[i] - start->sp;
        if (at[i] == &start->fp) {
            r->fp_mask = ~0ull;
            continue;
        }
        if (offset > UINT32_MAX) {
            r->words = 0;
            return;
        }
        r->offset[r->words] = (uint32_t)offset;
        r->word[r->words++] = *at[i];
    }
}

void recall_keep(struct recall *r, const struct walker *w, const struct walk_start *start,
                 uint32_t generation, uint32_t stack)
{
    bool again = begins_here(r, start, generation);
    uint32_t misses = again ? r->misses + 1 : 0;
    if (again && misses % TRY_EVERY != 1) {
        store_relaxed(&r->misses, misses);
        return;
    }
    uint64_t version = load_relaxed(&r->version);
    if (version & 1 || !atomic_swap_if64(&r->version, version, version + 1))
        return;
    r->pc = start->pc;
    r->sp = start->sp;
    r->fp = start->fp;
    r->generation = generation;
    r->stack = stack;
    r->cell = 0;
    r->misses = misses;
    r->words = 0;
    if (again)
        write_words(r, w, start);
    store_release(&r->version, version + 2);
}
