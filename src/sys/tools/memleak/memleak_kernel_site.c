/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/memleak/memleak_kernel_site.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "sys/names/kernel_caller.h"
#include "sys/resolver.h"

struct memleak_sites {
    struct map by_stack;
};

struct memleak_sites *memleak_sites_new(void)
{
    return mem_alloc(sizeof(struct memleak_sites));
}

void memleak_sites_free(struct memleak_sites *m)
{
    if (!m)
        return;
    map_release(&m->by_stack);
    free(m);
}

/* Beginnings of names: the page allocator's own functions from 5.15 on. */
static const char *const allocators[] = {
    "__alloc_pages",    "alloc_pages",     "__alloc_frozen_pages",   "alloc_frozen_pages",
    "__get_free_pages", "get_free_pages",  "get_zeroed_page",        "__folio_alloc",
    "folio_alloc",      "vma_alloc_folio", "vma_alloc_zeroed",       "___kmalloc_large",
    "__kmalloc",        "kmalloc",         "get_page_from_freelist",
};

static bool is_inner(struct sys_session *s, uint64_t address)
{
    struct buf name = BUF_INIT;
    bool is = kernel_caller_is_helper(s, address);
    resolver_add_kernel_function(s->names, &name, address);
    for (size_t i = 0; i < sizeof(allocators) / sizeof(*allocators) && !is; i++)
        is = !strncmp(buf_str(&name), allocators[i], strlen(allocators[i]));
    buf_release(&name);
    return is;
}

static uint64_t call_of(struct sys_session *s, int stack)
{
    uint64_t frames[SYS_STACK_DEPTH];
    const unsigned n = sys_stack_frames(s, stack, frames);
    unsigned i = 0;
    while (i + 1 < n && is_inner(s, frames[i]))
        i++;
    return n ? frames[i] : 0;
}

uint64_t memleak_sites_find(struct memleak_sites *m, struct sys_session *s, int stack)
{
    if (stack < 0)
        return 0;
    size_t at = map_get_u64(&m->by_stack, (uint64_t)stack);
    if (at == MAP_NONE) {
        at = (size_t)call_of(s, stack);
        map_put_u64(&m->by_stack, (uint64_t)stack, at, NULL);
    }
    return at;
}
