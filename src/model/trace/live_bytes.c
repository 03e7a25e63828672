/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/trace/live_bytes.h"

#include <stdlib.h>

#include "base/address_table.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "model/trace/early_frees.h"

struct block {
    uint64_t address, bytes;
};

struct program {
    uint64_t bytes;
    struct address_table blocks;
};

struct live_bytes {
    struct map by_image, by_thread;
    struct VEC(struct program) programs;
    struct VEC(struct block)
        moved;    /* for each thread the block that its realloc() has begun with; address 0: none */
    uint64_t sum; /* of the bytes of all programs */
    struct early_frees early;
};

struct live_bytes *live_bytes_new(void)
{
    return mem_alloc(sizeof(struct live_bytes));
}

void live_bytes_free(struct live_bytes *l)
{
    if (!l)
        return;
    vec_each (struct program, p, &l->programs)
        address_table_release(&p->blocks);
    vec_release(&l->programs);
    vec_release(&l->moved);
    map_release(&l->by_image);
    map_release(&l->by_thread);
    free(l);
}

static struct program *program_of(struct live_bytes *l, uint64_t image_id)
{
    bool added;
    const size_t at = map_put_u64(&l->by_image, image_id, l->programs.len, &added);
    if (added)
        address_table_init(&vec_push(&l->programs)->blocks, sizeof(struct block));
    return &l->programs.at[at];
}

static struct block *moved_by(struct live_bytes *l, uint32_t thread)
{
    bool added;
    const size_t at = map_put_u64(&l->by_thread, thread, l->moved.len, &added);
    if (added)
        vec_push(&l->moved);
    return &l->moved.at[at];
}

/* Returns the block that is no longer there; its address is 0 if there was none. */
static struct block remove_block(struct program *p, uint64_t address)
{
    struct block *b = address ? address_table_find(&p->blocks, sizeof(*b), address) : NULL;
    const struct block found = b ? *b : (struct block){0};
    if (!found.address)
        return found;
    p->bytes -= found.bytes;
    address_table_remove(&p->blocks, sizeof(*b), b);
    return found;
}

static bool add_block(struct program *p, struct block b)
{
    if (!b.address)
        return false;
    remove_block(p, b.address); /* its free was lost */
    p->bytes += b.bytes;
    address_table_add(&p->blocks, sizeof(b), &b);
    return true;
}

static bool change(struct live_bytes *l, struct program *p, const struct trace_event *e)
{
    const char *name = e->class->name + strlen("allium:");
    struct block b = {.address = trace_event_value(e, "ptr"), .bytes = trace_event_value(e, "size")};
    if (!strcmp(name, "free")) {
        const bool removed = remove_block(p, b.address).address;
        if (!removed)
            early_frees_note_event(&l->early, e, b.address, false);
        return removed;
    }
    if (!strcmp(name, "malloc") || !strcmp(name, "calloc") || !strcmp(name, "memalign"))
        return !early_frees_take_event(&l->early, e, b.address) && add_block(p, b);
    struct block *old = moved_by(l, e->thread);
    if (!strcmp(name, "realloc_begin")) {
        *old = remove_block(p, b.address);
        if (!old->address)
            early_frees_note_event(&l->early, e, b.address, true);
        return old->address;
    }
    if (strcmp(name, "realloc_end"))
        return false;
    if (!b.address && b.bytes) { /* it failed: the old block stays */
        b = *old;
        early_frees_take_back(&l->early, e->image_id, e->thread);
    }
    *old = (struct block){0};
    return !early_frees_take_event(&l->early, e, b.address) && add_block(p, b);
}

bool live_bytes_take(struct live_bytes *l, const struct trace_event *e, uint64_t *bytes)
{
    if (!e->image_id || strncmp(e->class->name, "allium:", 7))
        return false;
    struct program *p = program_of(l, e->image_id);
    const uint64_t before = p->bytes;
    const bool changed = change(l, p, e);
    *bytes = p->bytes;
    l->sum += *bytes - before;
    return changed;
}

uint64_t live_bytes_sum(const struct live_bytes *l)
{
    return l->sum;
}
