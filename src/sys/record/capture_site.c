/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/capture_site.h"

#include <string.h>

#include "model/profile/wrappers.h"
#include "symbol/symbol.h"

#define ALL_HELPERS UINT32_MAX

void capture_sites_release(struct capture_sites *s)
{
    map_release(&s->known);
}

static bool find_frames(const struct kernel_capture *c, uint64_t call, struct symbol_frames *out)
{
    return c->names.frames && c->names.frames(c->names.arg, call, out) && out->len;
}

/* "ext4_alloc_inode [ext4]" without the module. */
static bool symbol_is_helper(const struct kernel_capture *c, uint64_t call)
{
    struct buf name = BUF_INIT;
    c->names.add_function(c->names.arg, &name, call);
    char *module = strstr(buf_str(&name), " [");
    if (module)
        *module = '\0';
    bool is = wrappers_have(c->helpers, buf_str(&name));
    buf_release(&name);
    return is;
}

/* The first function at the call, from the innermost one outwards, that is no helper. */
static uint32_t inlined_helpers(const struct kernel_capture *c, uint64_t call)
{
    struct symbol_frames frames;
    if (!find_frames(c, call, &frames))
        return symbol_is_helper(c, call) ? ALL_HELPERS : 0;
    for (uint32_t i = 0; i < frames.len; i++)
        if (!wrappers_have(c->helpers, frames.at[i].function))
            return i;
    return ALL_HELPERS;
}

static uint32_t inlined_at(struct capture_sites *s, uint64_t call)
{
    size_t known = map_get_u64(&s->known, call);
    if (known == MAP_NONE) {
        known = inlined_helpers(s->capture, call);
        map_put_u64(&s->known, call, known, NULL);
    }
    return (uint32_t)known;
}

struct capture_site capture_site_find(struct capture_sites *s, uint64_t call, uint32_t stack)
{
    const struct kernel_capture *c = s->capture;
    uint32_t depth = 0;
    if (!c->helpers)
        return (struct capture_site){.call = call};
    const uint64_t *callers = kmem_accounts_stack(c->accounts, stack, &depth);
    for (uint32_t i = 0; i < (callers ? depth : 1); i++) {
        const uint64_t at = callers ? callers[i] : call;
        const uint32_t inlined = inlined_at(s, at);
        if (inlined != ALL_HELPERS)
            return (struct capture_site){.call = at, .inlined = inlined};
    }
    return (struct capture_site){.call = call, .is_helper = true};
}

static const struct symbol_frame *frame_of(const struct kernel_capture *c, const struct capture_site *site,
                                           struct symbol_frames *frames)
{
    if (!find_frames(c, site->call, frames))
        return NULL;
    return &frames->at[site->inlined < frames->len ? site->inlined : 0];
}

void capture_site_add_call(const struct kernel_capture *c, const struct capture_site *site, struct buf *b)
{
    c->names.add_call(c->names.arg, b, site->call);
    buf_addstr(b, site->is_helper ? KERNEL_CAPTURE_HELPER : "");
}

void capture_site_add_function(const struct kernel_capture *c, const struct capture_site *site, struct buf *b)
{
    struct symbol_frames frames;
    struct buf symbol = BUF_INIT;
    const struct symbol_frame *f = frame_of(c, site, &frames);
    c->names.add_function(c->names.arg, &symbol, site->call);
    const char *module = strstr(buf_str(&symbol), " [");
    buf_printf(b, "%s%s", f ? f->function : buf_str(&symbol), f && module ? module : "");
    buf_addstr(b, site->is_helper ? KERNEL_CAPTURE_HELPER : "");
    buf_release(&symbol);
}

void capture_site_add_file(const struct kernel_capture *c, const struct capture_site *site, struct buf *b)
{
    struct symbol_frames frames;
    const struct symbol_frame *f = frame_of(c, site, &frames);
    const char *file = f ? c->names.frame_file(c->names.arg, f) : NULL;
    if (file)
        buf_addstr(b, file);
    else
        c->names.add_file(c->names.arg, b, site->call);
}

void capture_site_add_line(const struct kernel_capture *c, const struct capture_site *site, struct buf *b)
{
    struct symbol_frames frames;
    const struct symbol_frame *f = frame_of(c, site, &frames);
    const char *file = f ? c->names.frame_file(c->names.arg, f) : NULL;
    if (file && f->line)
        buf_printf(b, "%s:%u", file, f->line);
}

void capture_site_put(struct table *t, uint32_t column, const struct kernel_capture *c,
                      const struct capture_site *site,
                      void (*add)(const struct kernel_capture *c, const struct capture_site *site,
                                  struct buf *b))
{
    struct buf b = BUF_INIT;
    add(c, site, &b);
    if (b.len)
        table_text(t, column, buf_str(&b));
    buf_release(&b);
}
