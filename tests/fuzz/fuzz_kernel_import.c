/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/sys/record/import/{kernel_import,kernel_import_names,import_source,text_import}: whatever lines of
 * a trace say, allocations equal frees and what is live, in the totals and in the rows, and every call has a name, and
 * a file or a mark. The source of the kernel is one that is made up here.
 */
#include "require.h"

#include "symbol/kallsyms.h"
#include "symbol/kernel_source.h"
#include "sys/record/capture_span.h"
#include "sys/record/tasks.h"
#include "sys/record/import/text_import.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- a source: functions whose names are long are several ---- */

static const struct symbol_frame frames[] = {{"kmalloc", "slab.h", 1, true}, {"f", "f.c", 2, false}};

bool kernel_source_is_several(struct kernel_source *s, const char *module, const char *function)
{
    (void)s;
    return strlen(module) + strlen(function) > 8;
}

enum function_found kernel_source_place_frames(struct kernel_source *s, const struct kernel_place *p,
                                               struct symbol_frames *out)
{
    require(p->offset != UINT64_MAX, "a place before its function");
    *out = (struct symbol_frames){frames, 2};
    return p->offset % 7 == 0                                                 ? FUNCTION_NONE
           : kernel_source_is_several(s, p->module, p->function) && !p->bytes ? FUNCTION_SEVERAL
                                                                              : FUNCTION_ONE;
}

bool kernel_source_offset_frames(struct kernel_source *s, uint64_t offset, struct symbol_frames *out)
{
    (void)s;
    *out = (struct symbol_frames){frames, 2};
    return offset % 3;
}

void kernel_source_skip_headers(struct symbol_frames *out)
{
    if (out->len == 1)
        return;
    out->at++;
    out->len--;
}

const char *kernel_source_file(const struct kernel_source *s, const struct symbol_frame *frame)
{
    (void)s;
    return frame->file;
}

/* ---- what is imported ---- */

static void check_source(struct kernel_capture *c, uint64_t call)
{
    struct buf file = BUF_INIT;
    struct symbol_frames found;
    if (!c->names.add_file)
        return;
    c->names.add_file(c->names.arg, &file, call);
    bool known = c->names.frames(c->names.arg, call, &found);
    require(known ? !strcmp(buf_str(&file), "f.c") : !strncmp(buf_str(&file), "[unknown]", 9),
            "a file without frames, or frames without a file");
    buf_release(&file);
}

static void check_names(struct kernel_import *i, uint64_t call)
{
    struct buf text = BUF_INIT;
    struct kernel_capture *c = kernel_import_capture(i);
    c->names.add_call(c->names.arg, &text, call);
    require(text.len && strlen(buf_str(&text)) == text.len, "a call without a name");
    buf_reset(&text);
    c->names.add_function(c->names.arg, &text, call);
    c->names.number(c->names.arg, call);
    check_source(c, call);
    buf_release(&text);
}

static void check(struct kernel_import *i)
{
    size_t n;
    uint64_t allocations = 0, frees = 0, live = 0;
    struct kernel_capture *c = kernel_import_capture(i);
    const struct kmem_totals *t = kmem_accounts_totals(c->accounts);
    const struct kmem_account *rows = kmem_accounts_rows(c->accounts, &n);
    for (size_t k = 0; k < n; k++) {
        uint32_t depth;
        const uint64_t *stack = kmem_accounts_stack(c->accounts, rows[k].stack, &depth);
        allocations += rows[k].allocations;
        frees += rows[k].frees;
        live += rows[k].allocations - rows[k].frees;
        check_names(i, rows[k].call_site);
        for (uint32_t d = 0; d < depth; d++)
            check_names(i, stack[d]);
        kmem_accounts_text(c->accounts, rows[k].cache);
    }
    require(allocations == t->allocations && live == t->live_objects &&
                frees == t->frees + t->frees_without_event &&
                allocations == t->frees + t->frees_without_event + t->live_objects,
            "sums that do not fit");
}

/* Of a part of the time: what is live is the same. */
static void check_span(struct kernel_import *i)
{
    size_t n;
    uint64_t live = 0;
    struct kernel_capture *c = kernel_import_capture(i);
    const struct kmem_account *rows = capture_span_rows(c->span, c->accounts, &n);
    for (size_t k = 0; k < n; k++)
        live += rows[k].allocations - rows[k].frees;
    require(live == kmem_accounts_totals(c->accounts)->live_objects,
            "live objects of a time that do not fit");
    const struct kmem_pair *pairs = capture_span_pairs(c->span, c->accounts, &n);
    for (size_t k = 0; k < n; k++)
        require(pairs[k].frees <= kmem_accounts_totals(c->accounts)->frees, "more frees than there were");
    if (!c->pages)
        return;
    const struct page_account *pages = capture_span_pages(c->span, c->pages, &n);
    live = 0;
    for (size_t k = 0; k < n; k++)
        live += pages[k].allocated_pages - pages[k].freed_pages;
    require(live == page_accounts_totals(c->pages)->live_pages, "live pages of a time that do not fit");
}

static void check_pages(struct kernel_import *i)
{
    size_t n;
    uint64_t allocated = 0, freed = 0;
    struct kernel_capture *c = kernel_import_capture(i);
    if (!c->pages)
        return;
    const struct page_totals *t = page_accounts_totals(c->pages);
    const struct page_account *rows = page_accounts_rows(c->pages, &n);
    for (size_t k = 0; k < n; k++) {
        uint32_t depth;
        const uint64_t *stack = page_accounts_stack(c->pages, rows[k].stack, &depth);
        allocated += rows[k].allocated_pages;
        freed += rows[k].freed_pages;
        for (uint32_t d = 0; stack && d < depth; d++)
            check_names(i, stack[d]);
        page_accounts_text(c->pages, rows[k].comm);
        if (c->names.cgroup)
            c->names.cgroup(c->names.arg, 5);
        if (c->names.migrate_type)
            c->names.migrate_type(c->names.arg, rows[k].migrate_type);
    }
    require(allocated == t->allocated_pages && allocated - freed == t->live_pages, "pages that do not fit");
}

/* Whatever a kept folder says of threads. */
static void check_tasks(struct kernel_import *i, const uint8_t *data, size_t size)
{
    struct buf text = BUF_INIT;
    buf_add(&text, data, size);
    tasks_parse_groups(kernel_import_tasks(i), buf_str(&text));
    kernel_import_use_types(i, buf_str(&text));
    const uint32_t type = kernel_import_type(i, buf_str(&text));
    require(type == PAGE_EVENT_NO_TYPE ||
                !strcasecmp(kernel_import_capture(i)->names.migrate_type(i, type), buf_str(&text)),
            "a migrate type with another name");
    kernel_import_use_page_bytes(i, size << (size % 32));
    kernel_import_lacks_page_bytes(i);
    buf_release(&text);
    for (int32_t process = 0; process < 64; process++) {
        const char *group = tasks_cgroup(kernel_import_tasks(i), process);
        require(!group || strlen(group) <= size, "a control group that is not in the text");
        tasks_name(tasks_find(kernel_import_tasks(i), process));
    }
}

/* A call at a place that the file itself tells. */
static void check_place(struct kernel_import *i)
{
    const struct symbol_frame place = {.function = "f", .file = "f.c", .line = 7};
    struct buf file = BUF_INIT;
    const uint64_t call = kernel_import_place(i, &place, "ext4");
    check_names(i, call);
    struct kernel_capture *c = kernel_import_capture(i);
    c->names.add_file(c->names.arg, &file, call);
    require(!strcmp(buf_str(&file), "f.c"), "the place has another file");
    buf_release(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char symbols[] = "ffffffff81000000 T _stext\nffffffff81234500 t do_pipe2\n"
                                  "ffffffffc0201000 t ext4_init\t[ext4]\nffffffff82000000 T _etext\n";
    struct kallsyms k = {.lines = 0};
    kallsyms_parse(&k, symbols, "");
    struct kernel_import *i = kernel_import_new();
    struct text_import *t = text_import_new(i);
    kernel_import_use_symbols(i, size % 2 ? &k : NULL);
    kernel_import_use_source(i, size % 5 ? (struct kernel_source *)&k
                                         : NULL); /* what is in it is not looked at */
    kernel_import_use_gfp(i,
                          "print fmt: \"%s\", __print_flags(REC->gfp_flags, \"|\", {1, \"A\"}, {2, \"B\"})");
    if (size % 3)
        kernel_import_clocks_differ(i);
    if (size % 5 < 2)
        kernel_import_set_span(i, 1000 * (size % 7), size % 5 ? UINT64_MAX : 1000 * (size % 64));
    check_tasks(i, data, size);
    while (size) {
        const uint8_t *newline = memchr(data, '\n', size);
        const size_t len = newline ? (size_t)(newline - data) : size;
        text_import_line(t, (const char *)data, len);
        /* the same event as one of a binary file */
        const uint64_t stack[] = {UINT64_C(0xffffffff81234500) + len, 7};
        const struct kmem_event event = {.kind = len % 3 ? KMEM_EVENT_ALLOC : KMEM_EVENT_FREE,
                                         .time_ns = 1000 * len,
                                         .address = 8 * (len % 5),
                                         .call_site = stack[0],
                                         .requested_bytes = 100 * len,
                                         .allocated_bytes = 128 * len,
                                         .cache = "",
                                         .is_kmalloc = true,
                                         .stack = stack,
                                         .depth = len % 2 ? 2 : 0};
        const struct page_event pages = {.kind = (enum page_event_kind)(len % PAGE_EVENT_KINDS),
                                         .frame = len % 64,
                                         .order = len % 4,
                                         .stack = stack,
                                         .depth = len % 2 ? 2 : 0};
        kernel_import_pages_at(i, &pages, 1000 * len, len % 3);
        if (len % 7)
            kernel_import_event_at(i, &event);
        else
            kernel_import_own_event(i, &event);
        data += len + (newline != NULL);
        size -= len + (newline != NULL);
    }
    text_import_end(t);
    text_import_free(t);
    kernel_import_end(i, 0);
    check(i);
    check_pages(i);
    check_span(i);
    check_place(i);
    kernel_import_free(i);
    kallsyms_release(&k);
    return 0;
}
