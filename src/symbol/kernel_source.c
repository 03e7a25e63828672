/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/kernel_source.h"

#include <string.h>

#include "base/mem.h"

#define KNOWN_FILE "init/main.c" /* of start_kernel(), in every kernel */

struct kernel_source {
    const struct vmlinux *vmlinux;
    struct kernel_symbols *kernel;
    struct symbols *symbols;
    size_t before; /* bytes that stand before the name of each file */
    const char *top;
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

/* Where the tree lay that the kernel was built in. */
static void find_top(struct kernel_source *s)
{
    struct symbol_frames frames = {0};
    if (!s->vmlinux->in_init_main)
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
    free(s);
}

bool kernel_source_frames(struct kernel_source *s, uint64_t address, struct symbol_frames *out)
{
    struct kernel_symbol symbol;
    uint64_t begin = kernel_symbols_begin(s->kernel);
    if (!begin || !kernel_symbols_find(s->kernel, address, &symbol) || *symbol.module)
        return false;
    resolve(s, address - begin + s->vmlinux->stext, out); /* the kernel moves as a whole (KASLR) */
    return out->at[out->len - 1].file != NULL;
}

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

bool kernel_source_call_frames(struct kernel_source *s, uint64_t address, struct symbol_frames *out)
{
    if (!kernel_source_frames(s, address, out))
        return false;
    while (out->len > 1 && (!out->at->file || is_header(out->at->file))) {
        out->at++;
        out->len--;
    }
    return true;
}

const struct symbol_frame *kernel_source_call(struct kernel_source *s, uint64_t address)
{
    struct symbol_frames frames;
    return kernel_source_call_frames(s, address, &frames) ? frames.at : NULL;
}
