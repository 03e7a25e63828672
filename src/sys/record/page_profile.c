/* SPDX-License-Identifier: BSD-2-Clause */
/* The accounts of pages as a profile, beside the one of objects. */
#include <string.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "sys/record/capture_code.h"
#include "sys/record/kernel_capture.h"

static bool is_of_tracing(struct capture_code *code, uint32_t location)
{
    const struct profile_location *o = &code->p->locations.at[location];
    const struct profile_line *line = &code->p->lines.at[o->first_line + o->n_lines - 1];
    return kernel_capture_is_tracing(profile_text(code->p, line->function));
}

static void add_frame(struct profile *p, uint32_t location)
{
    *vec_push(&p->stack_locations) = location;
}

/* "[GFP_KERNEL|__GFP_ZERO]" for the function, "[program bash]" for its caller. */
static void add_known(struct kernel_capture *c, struct capture_code *code,
                      const struct kernel_capture_page_cell *key)
{
    const char *comm = page_accounts_text(c->pages, key->comm);
    struct buf flags = BUF_INIT, program = BUF_INIT;
    buf_addch(&flags, '[');
    if (c->names.add_gfp)
        c->names.add_gfp(c->names.arg, &flags, key->gfp);
    buf_addstr(&flags, flags.len > 1 ? "]" : "pages]");
    buf_printf(&program, *comm == '[' ? "%s" : "[program %s]", comm);
    add_frame(code->p, capture_code_text(code, buf_str(&flags)));
    if (*comm)
        add_frame(code->p, capture_code_text(code, buf_str(&program)));
    buf_release(&flags);
    buf_release(&program);
}

static uint8_t class_of_order(uint64_t page_bytes, uint32_t order)
{
    return (uint8_t)(63 - __builtin_clzll(page_bytes << order));
}

static void add_cell(struct kernel_capture *c, struct capture_code *code,
                     const struct kernel_capture_page_cell *key)
{
    uint32_t depth;
    struct profile *p = code->p;
    const uint64_t *stack = page_accounts_stack(c->pages, key->stack, &depth);
    const uint32_t first = (uint32_t)p->stack_locations.len;
    for (uint32_t i = 0; stack && i < depth; i++) {
        uint32_t location = capture_code_location(code, stack[i]);
        if (p->stack_locations.len > first || !is_of_tracing(code, location))
            add_frame(p, location);
    }
    if (p->stack_locations.len == first)
        add_known(c, code, key);
    *vec_push(&p->stacks) =
        (struct profile_stack){first, (uint32_t)p->stack_locations.len - first, PROFILE_STACK_WHOLE};
    *vec_push(&p->cells) = (struct profile_cell){.stack = (uint32_t)p->stacks.len - 1,
                                                 .size_class = class_of_order(c->page_bytes, key->order),
                                                 .period_bytes = 1};
}

/* Returns the number of the account's cell, which may be new. */
static size_t cell_of(struct kernel_capture *c, const struct page_account *a)
{
    const struct kernel_capture_page_cell key = {
        .gfp = a->stack ? 0 : a->gfp, .stack = a->stack, .comm = a->stack ? 0 : a->comm, .order = a->order};
    bool added;
    size_t number = map_put(&c->page_cell_index, &key, sizeof(key), c->page_cells.len, &added);
    if (added)
        *vec_push(&c->page_cells) = key;
    return number;
}

/* Rows that only free or failed have no memory. */
static bool counts(const struct kernel_capture *c, const struct page_account *a)
{
    return (a->use == PAGE_USE_OTHER || c->pages_alone) && (a->allocations || a->at_peak_pages);
}

static void add_sums(struct profile_sums *s, uint64_t blocks, uint64_t bytes)
{
    s->samples += blocks;
    s->count += (double)blocks;
    s->bytes += (double)bytes;
    s->seen_bytes = s->bytes; /* whole pages are what was requested */
}

static void add_image(struct kernel_capture *c, struct profile *p)
{
    const struct page_totals *t = page_accounts_totals(c->pages);
    const uint64_t now = clock_ns(CLOCK_REALTIME);
    const uint64_t peak_pages = c->pages_alone ? t->peak_pages : t->peak_other_pages;
    const uint32_t comm = profile_string(p, KERNEL_CAPTURE_NO_SLABS), file = profile_string(p, "vmlinux");
    *vec_push(&p->images) = (struct profile_image){
        .id = c->image_id + 1,
        .comm = comm,
        .exe = file,
        .state = c->over ? PROFILE_IMAGE_ENDED : PROFILE_IMAGE_RUNNING,
        .peak_ns = t->peak_other_ns ? t->peak_other_ns + (uint64_t)c->realtime_ns : c->began_ns,
        .peak_bytes = (double)(peak_pages * c->page_bytes),
    };
    kernel_capture_times(c, &p->images.at[0].began_ns, &p->images.at[0].taken_ns);
    *vec_push(&p->threads) = (struct profile_thread){.image = 0};
    p->taken_ns = now;
    p->period_bytes = 1;
    p->has_requested = true;
}

struct profile *kernel_capture_page_profile(struct kernel_capture *c)
{
    size_t n;
    if (!c->pages)
        return NULL;
    struct profile *p = profile_new();
    struct capture_code code = {.names = &c->names, .p = p};
    page_accounts_update_peak(c->pages);
    const struct page_account *rows = page_accounts_rows(c->pages, &n);
    add_image(c, p);
    for (size_t i = 0; i < n; i++)
        if (counts(c, &rows[i]))
            cell_of(c, &rows[i]);
    vec_each (const struct kernel_capture_page_cell, key, &c->page_cells)
        add_cell(c, &code, key);
    for (size_t i = 0; i < n; i++) {
        const struct page_account *a = &rows[i];
        if (!counts(c, a))
            continue;
        struct profile_cell *cell = &p->cells.at[cell_of(c, a)];
        add_sums(&cell->allocated, a->allocations, a->allocated_pages * c->page_bytes);
        add_sums(&cell->freed, a->freed_blocks, a->freed_pages * c->page_bytes);
        add_sums(&cell->at_peak, a->at_peak_blocks, a->at_peak_pages * c->page_bytes);
    }
    capture_code_release(&code);
    return p;
}
