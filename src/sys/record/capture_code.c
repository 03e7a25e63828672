/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/capture_code.h"

#include <string.h>

#include "base/buf.h"
#include "symbol/symbol.h"

#define KERNEL "vmlinux"

static void add_line(struct capture_code *c, const char *function, const struct symbol_frame *f)
{
    struct profile_line line = {.function = profile_string(c->p, function)};
    if (f) {
        line.file = profile_string(c->p, c->names->frame_file(c->names->arg, f));
        line.line = f->line;
        line.inlined = f->inlined;
    }
    *vec_push(&c->p->lines) = line;
}

/* A line for each function that is inlined at the call, and for the one that contains it, which `name` names. */
static void add_lines(struct capture_code *c, uint64_t call, const char *name)
{
    struct symbol_frames frames = {0};
    bool known = c->names->frames && c->names->frames(c->names->arg, call, &frames);
    for (size_t i = 0; known && i + 1 < frames.len; i++)
        add_line(c, frames.at[i].function, &frames.at[i]);
    add_line(c, name, known ? &frames.at[frames.len - 1] : NULL);
}

static uint32_t module_of(struct capture_code *c, const char *path)
{
    bool added;
    size_t module = map_put(&c->modules, path, strlen(path), c->p->modules.len, &added);
    if (added) {
        uint32_t text = profile_string(c->p, path);
        *vec_push(&c->p->modules) = (struct profile_module){.path = text, .end = UINT64_MAX};
    }
    return (uint32_t)module;
}

static uint32_t add_location(struct capture_code *c, uint32_t module, uint64_t address)
{
    *vec_push(&c->p->locations) = (struct profile_location){
        .module = module, .address = address, .first_line = (uint32_t)c->p->lines.len};
    return (uint32_t)c->p->locations.len - 1;
}

static void end_location(struct capture_code *c)
{
    struct profile_location *location = &c->p->locations.at[c->p->locations.len - 1];
    location->n_lines = (uint32_t)c->p->lines.len - location->first_line;
}

/* "ext4_alloc_inode [ext4]" is a function and its module; without one the module is the kernel. */
uint32_t capture_code_location(struct capture_code *c, uint64_t call)
{
    size_t known = map_get_u64(&c->locations, call);
    if (known != MAP_NONE)
        return (uint32_t)known;
    struct buf name = BUF_INIT;
    c->names->add_function(c->names->arg, &name, call);
    char *bracket = strstr(name.data, " [");
    uint32_t module = module_of(c, bracket ? bracket + 1 : KERNEL);
    if (bracket)
        *bracket = '\0';
    uint32_t location = add_location(c, module, c->names->number(c->names->arg, call));
    add_lines(c, call, buf_str(&name));
    end_location(c);
    buf_release(&name);
    map_put_u64(&c->locations, call, location, NULL);
    return location;
}

/* In place of an address, which tells locations apart: with a bit that no number of a call has. */
static uint64_t number_of(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return (h & ~(UINT64_C(1) << 63)) | UINT64_C(1) << 62;
}

uint32_t capture_code_text(struct capture_code *c, const char *text)
{
    size_t known = map_get(&c->texts, text, strlen(text));
    if (known != MAP_NONE)
        return (uint32_t)known;
    uint32_t location = add_location(c, module_of(c, KERNEL), number_of(text));
    add_line(c, text, NULL);
    end_location(c);
    map_put(&c->texts, text, strlen(text), location, NULL);
    return location;
}

void capture_code_release(struct capture_code *c)
{
    map_release(&c->modules);
    map_release(&c->locations);
    map_release(&c->texts);
}
