/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/kernel_capture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "sys/record/capture_code.h"
#include "sys/record/capture_span.h"

#define PAGES_NAME   "(pages)"
#define KMALLOC_STEP 8u
#define KMALLOC_MOST 8192u /* two pages of 4 KiB: a larger request has no cache */

/* With slub_debug= an object of a cache takes more than the largest request that has a cache. */
static bool has_no_cache(const struct kmem_event *e)
{
    return e->is_kmalloc && (e->requested_bytes > KMALLOC_MOST || e->allocated_bytes > 2 * KMALLOC_MOST);
}

const char *kernel_capture_kmalloc_name(struct kernel_capture *c, const struct kmem_event *e)
{
    if (has_no_cache(e))
        return PAGES_NAME;
    if (!c->kmalloc_names)
        c->kmalloc_names = mem_array(2 * KMALLOC_MOST / KMALLOC_STEP + 1, sizeof(*c->kmalloc_names));
    char *name = c->kmalloc_names[e->allocated_bytes / KMALLOC_STEP];
    if (!*name)
        snprintf(name, KERNEL_CAPTURE_NAME, "(kmalloc %" PRIu64 ")", e->allocated_bytes);
    return name;
}

void kernel_capture_mark_pages(struct kernel_capture *c, const struct kmem_event *e)
{
    if (c->pages && e->kind == KMEM_EVENT_ALLOC && !e->is_percpu)
        page_accounts_object(c->pages, e->address, has_no_cache(e), e->cpu);
}

bool kernel_capture_add_pages(struct kernel_capture *c, const struct page_event *e, uint32_t cpu)
{
    if (!page_accounts_add(c->pages, e))
        return false;
    if (e->kind == PAGE_EVENT_ALLOC && e->frame != PAGE_EVENT_NO_FRAME)
        page_accounts_last(c->pages, e->frame, e->order, cpu);
    return true;
}

void kernel_capture_begin_span(struct kernel_capture *c)
{
    capture_span_free(c->span);
    c->span = capture_span_new(c->accounts, c->pages);
}

static void add_sums(struct profile_sums *s, uint64_t count, uint64_t bytes, uint64_t requested_bytes)
{
    s->samples += count;
    s->count += (double)count;
    s->bytes += (double)bytes;
    s->seen_bytes += (double)requested_bytes;
}

/* Without a stack there is the call alone. */
static void add_cell(struct kernel_capture *c, struct capture_code *code,
                     const struct kernel_capture_cell *key)
{
    struct profile *p = code->p;
    uint32_t depth;
    const uint64_t *stack = kmem_accounts_stack(c->accounts, key->stack, &depth);
    const uint32_t first = (uint32_t)p->stack_locations.len;
    if (!stack) {
        stack = &key->call_site;
        depth = 1;
    }
    for (uint32_t i = 0; i < depth; i++) {
        uint32_t location = capture_code_location(code, stack[i]);
        *vec_push(&p->stack_locations) = location;
    }
    *vec_push(&p->stacks) = (struct profile_stack){first, depth, PROFILE_STACK_WHOLE};
    *vec_push(&p->cells) = (struct profile_cell){
        .stack = (uint32_t)p->stacks.len - 1, .size_class = (uint8_t)key->size_class, .period_bytes = 1};
}

/* Returns the number of the account's cell, which may be new. */
static size_t cell_of(struct kernel_capture *c, const struct kmem_account *a)
{
    const struct kernel_capture_cell key = {a->call_site, a->stack, a->size_class};
    bool added;
    size_t number = map_put(&c->cell_index, &key, sizeof(key), c->cells.len, &added);
    if (added)
        *vec_push(&c->cells) = key;
    return number;
}

void kernel_capture_times(const struct kernel_capture *c, uint64_t *began_ns, uint64_t *taken_ns)
{
    const struct kmem_totals *t = kmem_accounts_totals(c->accounts);
    const struct page_totals none = {0}, *q = c->pages ? page_accounts_totals(c->pages) : &none;
    *began_ns = c->began_ns;
    *taken_ns = c->ended_ns ? c->ended_ns : clock_ns(CLOCK_REALTIME);
    if (!t->last_ns && !q->last_ns) /* no event, or only what was held at one moment */
        return;
    const uint64_t first = !q->events || (t->events && t->first_ns < q->first_ns) ? t->first_ns : q->first_ns;
    *began_ns = first + (uint64_t)c->realtime_ns;
    *taken_ns = (t->last_ns > q->last_ns ? t->last_ns : q->last_ns) + (uint64_t)c->realtime_ns;
}

static void add_image(struct kernel_capture *c, struct profile *p)
{
    const struct kmem_totals *t = kmem_accounts_totals(c->accounts);
    const uint64_t now = clock_ns(CLOCK_REALTIME);
    uint32_t kernel = profile_string(p, KERNEL_CAPTURE_OBJECTS), file = profile_string(p, "vmlinux");
    *vec_push(&p->images) = (struct profile_image){
        .id = c->image_id,
        .comm = kernel,
        .exe = file,
        .state = c->over ? PROFILE_IMAGE_ENDED : PROFILE_IMAGE_RUNNING,
        .peak_ns = t->last_ns ? t->peak_ns + (uint64_t)c->realtime_ns : c->began_ns,
        .peak_bytes = (double)t->peak_bytes,
        .losses = {[PROFILE_LOST_SAMPLES] = c->lost},
    };
    kernel_capture_times(c, &p->images.at[0].began_ns, &p->images.at[0].taken_ns);
    *vec_push(&p->threads) = (struct profile_thread){.image = 0};
    p->taken_ns = now;
    p->period_bytes = 1;
    p->has_requested = true;
}

struct profile *kernel_capture_profile(struct kernel_capture *c)
{
    size_t n;
    struct profile *p = profile_new();
    struct capture_code code = {.names = &c->names, .p = p};
    kmem_accounts_update_peak(c->accounts);
    const struct kmem_account *rows = kmem_accounts_rows(c->accounts, &n);
    add_image(c, p);
    for (size_t i = 0; i < n; i++)
        if (rows[i].allocations)
            cell_of(c, &rows[i]);
    vec_each (const struct kernel_capture_cell, key, &c->cells)
        add_cell(c, &code, key);
    for (size_t i = 0; i < n; i++) {
        const struct kmem_account *a = &rows[i];
        if (!a->allocations)
            continue;
        struct profile_cell *cell = &p->cells.at[cell_of(c, a)];
        add_sums(&cell->allocated, a->allocations, a->allocated_bytes, a->requested_bytes);
        add_sums(&cell->freed, a->frees, a->freed_bytes, a->freed_requested_bytes);
        add_sums(&cell->at_peak, a->at_peak_objects, a->at_peak_bytes, a->at_peak_requested_bytes);
    }
    capture_code_release(&code);
    return p;
}

void kernel_capture_init(struct kernel_capture *c, const struct kernel_code_names *names)
{
    *c = (struct kernel_capture){.accounts = kmem_accounts_new(), .names = *names};
    c->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    c->image_id = clock_ns(CLOCK_REALTIME) | 1;
}

void kernel_capture_release(struct kernel_capture *c)
{
    kmem_accounts_free(c->accounts);
    capture_span_free(c->span);
    page_accounts_free(c->pages);
    free(c->kmalloc_names);
    vec_release(&c->cells);
    map_release(&c->cell_index);
    vec_release(&c->page_cells);
    map_release(&c->page_cell_index);
}
