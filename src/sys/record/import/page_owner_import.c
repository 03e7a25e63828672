/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/import/page_owner_import.h"

#include <stdlib.h>
#include <string.h>

/* At the inner end of stacks: what records the owner, and the parts of the page allocator below its functions. */
static const char *const inner[] = {
    "save_stack",    "__set_page_owner", "set_page_owner",         "__reset_page_owner", "post_alloc_hook",
    "prep_new_page", "prep_new_pages",   "get_page_from_freelist", "prep_compound_page", NULL};

/* Slabs and large requests of kmalloc() get their pages in these functions. */
static const char *const slab_functions[] = {"allocate_slab", "alloc_slab_page", "new_slab", NULL};
static const char *const kmalloc_functions[] = {"___kmalloc_large_node",
                                                "__kmalloc_large_node",
                                                "kmalloc_large_node",
                                                "kmalloc_large",
                                                "kmalloc_order",
                                                "kmalloc_order_trace",
                                                NULL};
#define NEAR 6u /* frames in which these are sought */

static bool is_one_of(const char *line, const char *const *names)
{
    const size_t len = strcspn(line, "+. \n"); /* "new_slab.constprop.0+0x12" is one, too */
    for (; *names; names++)
        if (strlen(*names) == len && !strncmp(line, *names, len))
            return true;
    return false;
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* The stack without its inner end; all of it if there is nothing else. */
static const char *outer_part(const char *stack)
{
    const char *line = stack;
    while (*line && is_one_of(line, inner))
        line = next_line(line);
    return *line ? line : stack;
}

static enum page_use use_of(const struct page_owner_block *b, const char *stack)
{
    enum page_use use = b->is_slab ? PAGE_USE_SLAB : PAGE_USE_OTHER;
    const char *line = stack;
    for (unsigned k = 0; *line && k < NEAR && use == PAGE_USE_OTHER; k++, line = next_line(line))
        use = is_one_of(line, slab_functions)      ? PAGE_USE_SLAB
              : is_one_of(line, kmalloc_functions) ? PAGE_USE_KMALLOC
                                                   : PAGE_USE_OTHER;
    return use;
}

static uint32_t stack_of(struct kernel_import *i, const char *stack,
                         uint64_t out[static KMEM_EVENT_DEPTH_MAX])
{
    uint32_t depth = 0;
    for (const char *line = stack; *line && depth < KMEM_EVENT_DEPTH_MAX; line = next_line(line))
        out[depth++] = kernel_import_call(i, line, strcspn(line, "\n"));
    return depth;
}

static uint32_t number_of_text(struct page_owner_rows *rows, const char *text)
{
    bool added;
    const size_t number = map_put(&rows->text_index, text, strlen(text), rows->texts.len, &added);
    if (added)
        *vec_push(&rows->texts) = mem_strdup(text);
    return (uint32_t)number;
}

static void widen(uint64_t *first, uint64_t *last, uint64_t ns)
{
    if (ns == PAGE_OWNER_UNKNOWN)
        return;
    *first = ns < *first ? ns : *first;
    *last = *last == PAGE_OWNER_UNKNOWN || ns > *last ? ns : *last;
}

static void add_row(struct page_owner_rows *rows, const struct page_owner_row *like,
                    const struct page_owner_block *b)
{
    const uint64_t key[] = {
        (uint64_t)like->order << 32 | like->type, like->block_type, like->gfp, like->pid, like->tgid,
        (uint64_t)like->comm << 32 | like->stack};
    bool added;
    const size_t number = map_put(&rows->index, key, sizeof(key), rows->all.len, &added);
    if (added)
        *vec_push(&rows->all) = *like;
    struct page_owner_row *row = &rows->all.at[number];
    row->blocks += b->times;
    widen(&row->first_ns, &row->last_ns, b->time_ns);
    widen(&row->freed_first, &row->freed_last, b->freed_ns);
}

/* What a process is to other traces, its group of threads, is told since Linux 6.0; before, only the thread. */
static int32_t process_of(const struct page_owner_block *b)
{
    return b->tgid <= INT32_MAX ? (int32_t)b->tgid : KMEM_EVENT_NO_PROCESS;
}

void page_owner_import_add(struct kernel_import *i, struct page_owner_rows *rows,
                           const struct page_owner_block *b)
{
    uint64_t stack[KMEM_EVENT_DEPTH_MAX];
    const char *outer = outer_part(buf_str(&b->stack));
    const char *names = b->gfp ? buf_str(&b->gfp_names) : "none";
    const uint64_t gfp = kernel_import_gfp(i, names, strlen(names));
    const struct page_event e = {.kind = PAGE_EVENT_ALLOC,
                                 .order = b->order,
                                 .migrate_type = kernel_import_type(i, b->type),
                                 .gfp = gfp,
                                 .process = process_of(b),
                                 .comm = *b->comm ? b->comm : NULL,
                                 .stack = stack,
                                 .depth = stack_of(i, outer, stack)};
    const struct page_owner_row like = {.order = b->order,
                                        .type = e.migrate_type,
                                        .block_type = kernel_import_type(i, b->block_type),
                                        .gfp = gfp,
                                        .pid = b->pid,
                                        .tgid = b->tgid,
                                        .comm = number_of_text(rows, b->comm),
                                        .stack = number_of_text(rows, outer),
                                        .first_ns = PAGE_OWNER_UNKNOWN,
                                        .last_ns = PAGE_OWNER_UNKNOWN,
                                        .freed_first = PAGE_OWNER_UNKNOWN,
                                        .freed_last = PAGE_OWNER_UNKNOWN};
    struct kernel_capture *c = kernel_import_capture(i);
    kernel_import_use_pages(i);
    if (page_accounts_hold(c->pages, &e, use_of(b, outer), b->times))
        add_row(rows, &like, b);
    else
        kernel_import_counts(i)->broken++;
    c->comms |= *b->comm != '\0';
}

void page_owner_import_end(struct kernel_import *i, uint64_t broken, uint64_t written_ns)
{
    kernel_import_counts(i)->broken += broken;
    kernel_import_capture(i)->pages_alone = true;
    kernel_import_time(i, written_ns);
    kernel_import_end(i, 0);
}

void page_owner_rows_release(struct page_owner_rows *rows)
{
    vec_each (char *, text, &rows->texts)
        free(*text);
    vec_release(&rows->texts);
    vec_release(&rows->all);
    map_release(&rows->index);
    map_release(&rows->text_index);
}
