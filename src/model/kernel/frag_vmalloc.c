/* SPDX-License-Identifier: BSD-2-Clause */
/* Areas of vmalloc() by the code that made them, and the holes between them. */
#include "base/hash_map.h"
#include "model/kernel/frag.h"

struct placed {
    const struct memory_area *area;
    size_t caller;
};

static int by_begin(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return x->area->begin < y->area->begin ? -1 : x->area->begin > y->area->begin;
}

static int by_bytes(const void *a, const void *b)
{
    const struct frag_caller *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void add(struct frag_range *sum, uint64_t bytes)
{
    *sum = frag_exact(sum->low + bytes);
}

static uint64_t bytes_of(uint64_t pages, uint64_t page_bytes)
{
    uint64_t bytes;
    return __builtin_mul_overflow(pages, page_bytes, &bytes) || bytes > MEMORY_VALUE_MAX ? MEMORY_VALUE_MAX
                                                                                         : bytes;
}

static void add_area(struct frag_vmalloc *v, struct frag_caller *c, const struct memory_area *a,
                     uint64_t page_bytes)
{
    c->areas++;
    c->bytes += a->bytes;
    v->areas++;
    v->bytes += a->bytes;
    v->unpurged_bytes += a->unpurged ? a->bytes : 0;
    if (a->paged) {
        add(&c->pages_bytes, bytes_of(a->pages, page_bytes));
        add(&v->pages_bytes, bytes_of(a->pages, page_bytes));
    }
}

/* A hole is charged to the area before it. Areas of a hostile text may overlap: there is no hole then. */
static void add_holes(struct frag_vmalloc *v, struct placed *placed, size_t n)
{
    uint64_t end = 0;
    if (n)
        qsort(placed, n, sizeof(*placed), by_begin);
    for (size_t i = 0; i < n; i++) {
        struct frag_caller *c = &v->callers.at[placed[i].caller];
        const uint64_t next = i + 1 < n ? placed[i + 1].area->begin : 0;
        uint64_t hole = 0;
        end = placed[i].area->end > end ? placed[i].area->end : end;
        if (next > end && next - end < FRAG_HOLE_BYTES_MAX)
            hole = next - end;
        add(&c->holes_bytes, hole);
        add(&v->holes_bytes, hole);
        v->holes += hole != 0;
        if (!v->largest_hole_bytes.known || hole > v->largest_hole_bytes.high)
            v->largest_hole_bytes = frag_exact(hole);
    }
}

void frag_vmalloc_compute(struct frag_vmalloc *v, const struct memory_state *s)
{
    struct map index = {0};
    struct placed *placed = mem_array(s->areas.len + 1, sizeof(*placed));
    size_t n = 0;
    *v = (struct frag_vmalloc){.areas = 0};
    vec_each (const struct memory_area, a, &s->areas) {
        bool added;
        const size_t i = map_put(&index, a->caller, strlen(a->caller), v->callers.len, &added);
        if (added)
            vec_push(&v->callers)->name = a->caller;
        add_area(v, &v->callers.at[i], a, s->page_bytes);
        if (a->placed)
            placed[n++] = (struct placed){a, i};
    }
    add_holes(v, placed, n);
    if (v->callers.len)
        qsort(v->callers.at, v->callers.len, sizeof(*v->callers.at), by_bytes);
    free(placed);
    map_release(&index);
}
