/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/addrspace/vma_history.h"

#include <stdlib.h>

#include "base/mem.h"

#define DEEP      16  /* more layers are folded into one */
#define TAIL_MIN  256 /* fewer entries are not worth folding */
#define WHOLE_END UINT64_MAX

struct entry {
    uint64_t time_ns;
    struct space_mapping mapping; /* of kind MAPPING_NONE over the whole space: everything was unmapped */
};

struct vma_history {
    size_t refs;
    struct vma_history *under;
    unsigned depth;
    uint64_t from_ns;
    /* The mappings at the time up to which entries were folded: sorted by address, without covered parts. Empty if
     * there is a layer below. */
    struct VEC(struct space_mapping) base;
    struct VEC(struct entry) tail; /* later mappings, sorted by time */
    size_t fold_at; /* the tail is folded again when it is longer than this and the base together */
};

struct vma_history *vma_history_new(struct vma_history *under, uint64_t from_ns)
{
    struct vma_history *m = mem_alloc(sizeof(*m));
    m->refs = 1;
    m->from_ns = from_ns;
    m->fold_at = TAIL_MIN;
    if (under) {
        m->under = vma_history_get(under);
        m->depth = under->depth + 1;
    }
    return m;
}

struct vma_history *vma_history_get(struct vma_history *m)
{
    m->refs++;
    return m;
}

static void drop_content(struct mapped_files *files, struct vma_history *m)
{
    vec_each (struct space_mapping, b, &m->base)
        mapped_files_put(files, b->file);
    vec_each (struct entry, e, &m->tail)
        mapped_files_put(files, e->mapping.file);
    vec_release(&m->base);
    vec_release(&m->tail);
}

void vma_history_put(struct mapped_files *files, struct vma_history *m)
{
    while (m && !--m->refs) {
        struct vma_history *under = m->under;
        drop_content(files, m);
        free(m);
        m = under;
    }
}

struct vma_history *vma_history_shareable(struct vma_history *m)
{
    return m->under && !m->tail.len ? m->under : m;
}

/* Returns a new entry in the layer that was uppermost at that time, behind all entries that are not later. */
static struct entry *insert(struct vma_history *m, uint64_t time_ns)
{
    while (m->under && time_ns < m->from_ns)
        m = m->under;
    vec_push(&m->tail);
    size_t at = m->tail.len - 1;
    for (; at && m->tail.at[at - 1].time_ns > time_ns; at--)
        m->tail.at[at] = m->tail.at[at - 1];
    return &m->tail.at[at];
}

void vma_history_add(struct vma_history *m, uint64_t time_ns, const struct space_mapping *mapping)
{
    *insert(m, time_ns) = (struct entry){.time_ns = time_ns, .mapping = *mapping};
}

void vma_history_clear(struct vma_history *m, uint64_t time_ns)
{
    *insert(m, time_ns) = (struct entry){.time_ns = time_ns, .mapping = {.end = WHOLE_END}};
}

/* Returns the first mapping of the base that ends above the address, or NULL. */
static const struct space_mapping *search_base(const struct vma_history *m, uint64_t address)
{
    size_t low = 0, high = m->base.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (m->base.at[mid].end <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->base.len ? &m->base.at[low] : NULL;
}

bool vma_history_find(const struct vma_history *m, uint64_t time_ns, uint64_t address,
                      struct space_mapping *out)
{
    for (; m; m = m->under) {
        for (size_t i = m->tail.len; i-- > 0;) {
            const struct entry *e = &m->tail.at[i];
            if (e->time_ns > time_ns || address < e->mapping.start || address >= e->mapping.end)
                continue;
            *out = e->mapping;
            return out->kind != MAPPING_NONE;
        }
        const struct space_mapping *b = search_base(m, address);
        if (b && b->start <= address) {
            *out = *b;
            return true;
        }
    }
    return false;
}

/* Returns the lowest start of a mapping at or above the address, even if it is covered; WHOLE_END if there is none. */
static uint64_t next_start(const struct vma_history *m, uint64_t time_ns, uint64_t address)
{
    uint64_t best = WHOLE_END;
    for (; m; m = m->under) {
        vec_each (const struct entry, e, &m->tail)
            if (e->time_ns <= time_ns && e->mapping.kind != MAPPING_NONE && e->mapping.start >= address &&
                e->mapping.start < best)
                best = e->mapping.start;
        const struct space_mapping *b = search_base(m, address), *end = m->base.at + m->base.len;
        if (b && b->start < address)
            b = b + 1 < end ? b + 1 : NULL;
        if (b && b->start < best)
            best = b->start;
    }
    return best;
}

bool vma_history_next(const struct vma_history *m, uint64_t time_ns, uint64_t address,
                      struct space_mapping *out)
{
    for (; (address = next_start(m, time_ns, address)) != WHOLE_END; address++)
        if (vma_history_find(m, time_ns, address, out))
            return true;
    return false;
}

/* ---- folding ---- */

struct entries VEC(struct entry);

bool vma_history_grown(const struct vma_history *m)
{
    return m->depth > DEEP || m->tail.len > m->fold_at + m->base.len;
}

size_t vma_history_count(const struct vma_history *m)
{
    size_t count = 0;
    for (; m; m = m->under)
        count += m->base.len + m->tail.len;
    return count;
}

/* Appends all mappings of the layer and the layers below, oldest first. Takes no references to their files. */
static void gather(const struct vma_history *m, struct entries *all)
{
    if (m->under)
        gather(m->under, all);
    vec_each (const struct space_mapping, b, &m->base)
        *vec_push(all) = (struct entry){.time_ns = 0, .mapping = *b};
    vec_each (const struct entry, e, &m->tail)
        *vec_push(all) = *e;
    /* Insertion sort: nearly all entries are in order already, except entries that were added late. */
    for (size_t i = 1; i < all->len; i++)
        for (size_t k = i; k && all->at[k - 1].time_ns > all->at[k].time_ns; k--) {
            struct entry swap = all->at[k];
            all->at[k] = all->at[k - 1];
            all->at[k - 1] = swap;
        }
}

/* A sweep over the addresses: the entries sorted by start, and a heap of those that cover the present address, with the
 * latest entry on top. */
struct sweep {
    const struct entry *all;
    size_t *by_start, n, next;
    size_t *heap, heap_len;
};

static int by_start(const void *a, const void *b, void *all)
{
    const struct entry *entries = all;
    uint64_t x = entries[*(const size_t *)a].mapping.start, y = entries[*(const size_t *)b].mapping.start;
    return x < y ? -1 : x > y;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void heap_push(struct sweep *s, size_t entry)
{
    size_t at = s->heap_len++;
    for (; at && s->heap[(at - 1) / 2] < entry; at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = entry;
}

static void heap_pop(struct sweep *s)
{
    size_t last = s->heap[--s->heap_len], at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= s->heap_len)
            break;
        child += child + 1 < s->heap_len && s->heap[child + 1] > s->heap[child];
        if (s->heap[child] < last)
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
}

/* Returns the latest entry that covers `point`, the next point of the sweep; NULL if nothing is mapped there. */
static const struct entry *top_at(struct sweep *s, uint64_t point)
{
    while (s->next < s->n && s->all[s->by_start[s->next]].mapping.start <= point)
        heap_push(s, s->by_start[s->next++]);
    while (s->heap_len && s->all[s->heap[0]].mapping.end <= point)
        heap_pop(s);
    if (!s->heap_len || s->all[s->heap[0]].mapping.kind == MAPPING_NONE)
        return NULL;
    return &s->all[s->heap[0]];
}

static void add_piece(struct vma_history *m, const struct entry *of, uint64_t start, uint64_t end)
{
    struct space_mapping *last = m->base.len ? &m->base.at[m->base.len - 1] : NULL;
    uint64_t offset = of->mapping.page_offset + (start - of->mapping.start);
    if (last && last->end == start && last->file == of->mapping.file && last->kind == of->mapping.kind &&
        last->protection == of->mapping.protection && last->flags == of->mapping.flags &&
        (!last->file || last->page_offset + (last->end - last->start) == offset)) {
        last->end = end;
        return;
    }
    struct space_mapping *piece = vec_push(&m->base);
    *piece = of->mapping;
    piece->start = start;
    piece->end = end;
    piece->page_offset = offset;
    if (piece->file)
        piece->file->refs++;
}

/* Makes the base from the first n entries. */
static void make_base(struct vma_history *m, const struct entry *all, size_t n)
{
    struct sweep s = {.all = all, .n = n};
    uint64_t *points = mem_array(2 * n + 1, sizeof(*points));
    s.by_start = mem_array(n + 1, sizeof(*s.by_start));
    s.heap = mem_array(n + 1, sizeof(*s.heap));
    for (size_t i = 0; i < n; i++) {
        s.by_start[i] = i;
        points[2 * i] = all[i].mapping.start;
        points[2 * i + 1] = all[i].mapping.end;
    }
    qsort_r(s.by_start, n, sizeof(*s.by_start), by_start, (void *)all);
    qsort(points, 2 * n, sizeof(*points), by_value);
    for (size_t i = 0; i + 1 < 2 * n; i++) {
        const struct entry *top = points[i] < points[i + 1] ? top_at(&s, points[i]) : NULL;
        if (top)
            add_piece(m, top, points[i], points[i + 1]);
    }
    free(points);
    free(s.by_start);
    free(s.heap);
}

void vma_history_fold(struct mapped_files *files, struct vma_history *m, uint64_t oldest_query_ns)
{
    struct entries all = {0};
    struct vma_history folded = {.refs = m->refs, .from_ns = m->from_ns};
    size_t folded_n = 0;
    gather(m, &all);
    while (folded_n < all.len && all.at[folded_n].time_ns <= oldest_query_ns)
        folded_n++;
    make_base(&folded, all.at, folded_n);
    for (size_t i = folded_n; i < all.len; i++) {
        *vec_push(&folded.tail) = all.at[i];
        if (all.at[i].mapping.file)
            all.at[i].mapping.file->refs++;
    }
    folded.fold_at = 2 * folded.tail.len + TAIL_MIN;
    vec_release(&all);
    drop_content(files, m);
    vma_history_put(files, m->under);
    *m = folded;
}
