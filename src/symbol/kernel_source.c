/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/kernel_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symbol/elf_file.h"
#include "symbol/kernel_modules.h"
#include "symbol/symbol_names.h"
#include "symbol/tree/source_finder.h"

#define KNOWN_FILE "init/main.c" /* of start_kernel(), in every kernel */

struct kernel_source {
    const struct vmlinux *vmlinux;
    struct kernel_symbols *kernel;
    struct symbols *symbols;
    struct function_index *functions; /* of vmlinux; NULL: not read yet */
    size_t before;                    /* bytes that stand before the name of each file */
    const char *top;
    struct source_finder *finder; /* NULL: there is none */
    unsigned finder_reads;        /* of the kernel's symbols, when the finder got them */
    struct symbol_names names;    /* of what was found by name */
    struct symbol_frame by_name;  /* the last one */
};

static void resolve(struct kernel_source *s, uint64_t linked, struct symbol_frames *out)
{
    const struct symbol_module module = {.path = s->vmlinux->path,
                                         .root = "",
                                         .build_id = s->vmlinux->build_id,
                                         .build_id_len = s->vmlinux->build_id_len,
                                         .sent = s->vmlinux->sent};
    symbols_resolve(s->symbols, &module, &linked, 1, out);
}

static bool has_file(const struct symbol_frames *frames)
{
    return frames->at[frames->len - 1].file != NULL;
}

/* Where the tree lay that the kernel was built in. */
static void find_top(struct kernel_source *s)
{
    struct symbol_frames frames = {0};
    if (!s->vmlinux || !s->vmlinux->in_init_main)
        return;
    resolve(s, s->vmlinux->in_init_main, &frames);
    const char *file = frames.at[frames.len - 1].file;
    size_t len = file ? strlen(file) : 0, tail = strlen(KNOWN_FILE);
    if (len <= tail || strcmp(file + len - tail, KNOWN_FILE) || file[len - tail - 1] != '/')
        return;
    s->top = file;
    s->before = len - tail;
}

struct kernel_source *kernel_source_new(const struct vmlinux *v, struct kernel_symbols *k,
                                        struct symbols *symbols)
{
    struct kernel_source *s = mem_alloc(sizeof(*s));
    *s = (struct kernel_source){.vmlinux = v, .kernel = k, .symbols = symbols};
    find_top(s);
    return s;
}

void kernel_source_free(struct kernel_source *s)
{
    if (!s)
        return;
    function_index_free(s->functions);
    symbol_names_release(&s->names);
    free(s);
}

/* ---- by name ---- */

void kernel_source_use_finder(struct kernel_source *s, struct source_finder *finder)
{
    s->finder = finder;
}

/* The line of a call is not known, and that of the function would be taken for it. */
static void take_place(struct kernel_source *s, const char *function, const struct source_place *place,
                       struct symbol_frames *out)
{
    struct buf file = BUF_INIT;
    buf_printf(&file, "%s" KERNEL_SOURCE_BY_NAME, place->file);
    s->by_name = (struct symbol_frame){.function = symbol_names_function(&s->names, function),
                                       .file = symbol_names_store(&s->names, buf_str(&file))};
    *out = (struct symbol_frames){&s->by_name, 1};
    buf_release(&file);
}

/* In the running kernel. */
static bool find_by_name(struct kernel_source *s, const struct kernel_symbol *symbol, uint64_t address,
                         struct symbol_frames *out)
{
    struct source_place place;
    if (!s->finder || symbol->gone)
        return false;
    if (s->finder_reads != kernel_symbols_reads(s->kernel))
        source_finder_use_symbols(s->finder, kernel_symbols_table(s->kernel));
    s->finder_reads = kernel_symbols_reads(s->kernel);
    if (source_finder_at(s->finder, address, &place) != FUNCTION_ONE)
        return false;
    take_place(s, symbol->name, &place, out);
    return true;
}

/* ---- places ---- */

static bool module_frames(struct kernel_source *s, const struct kernel_symbol *symbol, uint64_t address,
                          struct symbol_frames *out)
{
    struct kernel_module_place place;
    if (!s->vmlinux || !s->vmlinux->modules || symbol->gone)
        return false;
    if (!kernel_modules_at(s->vmlinux->modules, symbol->module, address, &place) &&
        kernel_modules_find(s->vmlinux->modules, symbol->module, symbol->name, symbol->offset, symbol->bytes,
                            &place) != FUNCTION_ONE)
        return false;
    symbols_resolve(s->symbols, &place.file, &place.address, 1, out);
    return has_file(out);
}

bool kernel_source_frames(struct kernel_source *s, uint64_t address, struct symbol_frames *out)
{
    struct kernel_symbol symbol;
    uint64_t begin = kernel_symbols_begin(s->kernel);
    if (!begin || !kernel_symbols_find(s->kernel, address, &symbol))
        return false;
    const bool found = *symbol.module ? module_frames(s, &symbol, address, out)
                                      : kernel_source_offset_frames(s, address - begin, out);
    return found || find_by_name(s, &symbol, address, out);
}

bool kernel_source_offset_frames(struct kernel_source *s, uint64_t offset, struct symbol_frames *out)
{
    if (!s->vmlinux)
        return false;
    resolve(s, offset + s->vmlinux->stext, out); /* the kernel moves as a whole (KASLR) */
    return has_file(out);
}

static const struct function_index *functions_of(struct kernel_source *s)
{
    struct symbol_object *o;
    if (s->vmlinux && !s->functions && !symbol_object_open("", s->vmlinux->path, &o)) {
        s->functions = function_index_new(o->elf);
        symbol_object_free(o);
    }
    return s->functions;
}

static enum function_found debug_frames(struct kernel_source *s, const struct kernel_place *p,
                                        struct symbol_frames *out)
{
    struct kernel_module_place place;
    enum function_found found = FUNCTION_NONE;
    if (*p->module) {
        if (s->vmlinux && s->vmlinux->modules)
            found =
                kernel_modules_find(s->vmlinux->modules, p->module, p->function, p->offset, p->bytes, &place);
        if (found == FUNCTION_ONE)
            symbols_resolve(s->symbols, &place.file, &place.address, 1, out);
    } else if (functions_of(s)) {
        found = function_index_find(s->functions, p->function, p->offset, p->bytes, &place.address);
        if (found == FUNCTION_ONE)
            resolve(s, place.address, out);
    }
    return found == FUNCTION_ONE && !has_file(out) ? FUNCTION_NONE : found;
}

enum function_found kernel_source_place_frames(struct kernel_source *s, const struct kernel_place *p,
                                               struct symbol_frames *out)
{
    struct source_place place;
    enum function_found found = debug_frames(s, p, out);
    if (found != FUNCTION_NONE || !s->finder)
        return found;
    found = source_finder_find(s->finder, p->module, p->function, p->bytes, &place);
    if (found == FUNCTION_ONE)
        take_place(s, p->function, &place, out);
    return found;
}

bool kernel_source_is_several(struct kernel_source *s, const char *module, const char *function)
{
    if (s->finder && source_finder_is_several(s->finder, module, function))
        return true;
    if (*module)
        return s->vmlinux && s->vmlinux->modules &&
               kernel_modules_count(s->vmlinux->modules, module, function) > 1;
    return functions_of(s) && function_index_count(s->functions, function) > 1;
}

/* ---- files ---- */

const char *kernel_source_file(const struct kernel_source *s, const struct symbol_frame *frame)
{
    const char *file = frame->file;
    return file && s->before && !strncmp(file, s->top, s->before) ? file + s->before : file;
}

static bool is_header(const char *file)
{
    size_t len = strlen(file);
    return len > 2 && !strcmp(file + len - 2, ".h");
}

void kernel_source_skip_headers(struct symbol_frames *frames)
{
    while (frames->len > 1 && (!frames->at->file || is_header(frames->at->file))) {
        frames->at++;
        frames->len--;
    }
}

bool kernel_source_call_frames(struct kernel_source *s, uint64_t address, struct symbol_frames *out)
{
    if (!kernel_source_frames(s, address, out))
        return false;
    kernel_source_skip_headers(out);
    return true;
}

const struct symbol_frame *kernel_source_call(struct kernel_source *s, uint64_t address)
{
    struct symbol_frames frames;
    return kernel_source_call_frames(s, address, &frames) ? frames.at : NULL;
}
