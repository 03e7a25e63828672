/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/uprobe/alloc_places.h"

#include <string.h>
#include <sys/stat.h>

#include "base/hash_map.h"
#include "base/x86/x86_code.h"
#include "symbol/plt.h"
#include "symbol/probe/probe_file.h"

#define UNSAFE_BYTES 5u

struct alloc_places {
    const struct alloc_functions *functions;
    struct map by_name; /* of functions, to their indices */
    struct VEC(struct alloc_file *) files;
};

struct alloc_places *alloc_places_new(const struct alloc_functions *functions)
{
    struct alloc_places *p = mem_alloc(sizeof(*p));
    *p = (struct alloc_places){.functions = functions};
    for (size_t i = 0; i < functions->all.len; i++) {
        const char *name = functions->all.at[i].name;
        map_put(&p->by_name, name, strlen(name), i, NULL);
    }
    return p;
}

void alloc_places_free(struct alloc_places *p)
{
    if (!p)
        return;
    vec_each (struct alloc_file *, file, &p->files) {
        vec_each (struct alloc_place, place, &(*file)->places)
            vec_release(&place->returns);
        vec_release(&(*file)->places);
        free(*file);
    }
    vec_release(&p->files);
    map_release(&p->by_name);
    free(p);
}

/* ---- a file ---- */

struct search {
    struct alloc_places *p;
    bool *found; /* by the function's index */
};

static void note_name(void *arg, const char *name)
{
    struct search *s = arg;
    const size_t at = map_get(&s->p->by_name, name, strlen(name));
    if (at != MAP_NONE)
        s->found[at] = true;
}

static bool is_known(const struct alloc_file *file, uint64_t address)
{
    vec_each (const struct alloc_place, place, &file->places)
        if (place->address == address)
            return true;
    return false;
}

/* Never on a nop of five bytes, which Linux 6.18 may replace by a call: the instruction behind it does as well. */
static struct probe_place choose(const struct probe_code *code, uint64_t address, uint64_t bytes)
{
    const size_t all = code->high - code->low;
    struct probe_place place = probe_place_choose(code->bytes, all, address - code->low, bytes);
    const size_t at = address - code->low + place.after;
    if (!probe_place_is_unsafe(code->bytes + at, all - at) || all - at <= UNSAFE_BYTES)
        return place;
    const uint64_t after = place.after + UNSAFE_BYTES;
    place = probe_place_at(code->bytes + at + UNSAFE_BYTES, all - at - UNSAFE_BYTES);
    place.after = after;
    return place;
}

static void add_place(struct alloc_file *file, const struct probe_file *f,
                      const struct alloc_function *function)
{
    struct alloc_place place = {.function = function};
    if (probe_file_function(f, function->name, &place.address, &place.bytes) != PROBE_FUNCTION_ONE ||
        is_known(file, place.address))
        return;
    const struct probe_code *code = probe_file_code(f, place.address);
    if (!code)
        return;
    place.place = choose(code, place.address, place.bytes);
    if (probe_file_offset(f, place.address + place.place.after, &place.offset))
        *vec_push(&file->places) = place;
}

/* ---- the code of functions ---- */

struct walk {
    struct alloc_file *file;
    const struct probe_file *f;
    struct alloc_place *from;
    const struct symbol_stubs *stubs;
    struct map visited; /* functions that were looked at */
    unsigned depth;
    bool reaches; /* any other place */
    bool returns; /* without having been at a place of the same role */
};

static void walk_code(struct walk *w, uint64_t entry, x86_exit_fn *fn)
{
    const struct probe_code *code = probe_file_code(w->f, entry);
    if (code)
        x86_code_exits(&(struct x86_code){code->bytes, code->low, code->high}, entry, fn, w);
}

/* The symbol of another module, or of this one, that is called through a stub there; NULL: it is none. */
static const char *symbol_at(const struct walk *w, uint64_t address)
{
    vec_each (const struct symbol_stub, stub, w->stubs)
        if (address >= stub->low && address < stub->high)
            return stub->symbol;
    return NULL;
}

/* Another one of the allocator's functions at that address; NULL: there is none. */
static const struct alloc_place *other_at(const struct walk *w, uint64_t address)
{
    const char *symbol = symbol_at(w, address);
    vec_each (const struct alloc_place, place, &w->file->places)
        if ((place->address == address || (symbol && !strcmp(symbol, place->function->name))) &&
            place != w->from && place->function->role != ALLOC_LOADS)
            return place;
    return NULL;
}

#define DEPTH 2u /* calls between two functions; beyond, handlers of errors would be found */

static bool find_others(void *arg, uint64_t address, enum x86_exit how)
{
    struct walk *w = arg;
    if (how == X86_RETURNS)
        return true;
    const struct alloc_place *other = other_at(w, address);
    if (other) {
        w->reaches |= other->function->role == ALLOC_RETURNS;
        return true;
    }
    bool added = false;
    if (how == X86_CALLS && w->depth < DEPTH && !w->reaches)
        map_put_u64(&w->visited, address, 0, &added);
    if (added) {
        w->depth++;
        walk_code(w, address, find_others);
        w->depth--;
    }
    return true;
}

static bool find_own_return(void *arg, uint64_t address, enum x86_exit how)
{
    struct walk *w = arg;
    const struct alloc_place *other = how == X86_RETURNS ? NULL : other_at(w, address);
    w->returns |= how == X86_RETURNS;
    return !other || other->function->role != w->from->function->role || other->function->is_operator;
}

/* A return of the function itself, or of one that it jumps to at its end. */
static bool note_return(void *arg, uint64_t address, enum x86_exit how)
{
    struct walk *w = arg;
    uint64_t offset, target, bytes;
    if (how == X86_JUMPS && symbol_at(w, address) && w->depth < DEPTH &&
        probe_file_function(w->f, symbol_at(w, address), &target, &bytes) == PROBE_FUNCTION_ONE) {
        w->depth++;
        walk_code(w, target, note_return);
        w->depth--;
    }
    if (how != X86_RETURNS || !probe_file_offset(w->f, address, &offset))
        return true;
    vec_each (const uint64_t, known, &w->from->returns)
        if (*known == offset)
            return true;
    *vec_push(&w->from->returns) = offset;
    return true;
}

/*
 * Leaves out operators that do nothing without malloc() or free(), which count, and looks at the code of the others.
 * The kernel notes a return by another address in its place, which ends the program if an exception is to pass it: so
 * the returns of a function that may throw have probes of their own.
 */
static void look_at_code(struct alloc_file *file, const struct probe_file *f)
{
    struct symbol_stubs stubs = {NULL};
    bool *out = mem_array(file->places.len + 1, sizeof(*out));
    size_t kept = 0;
    symbol_plt_read(f->object->elf, &stubs);
    for (size_t i = 0; i < file->places.len; i++) {
        struct walk w = {.file = file, .f = f, .from = &file->places.at[i], .stubs = &stubs};
        walk_code(&w, w.from->address, find_own_return);
        out[i] = !w.returns;
        if (out[i])
            continue;
        walk_code(&w, w.from->address, find_others);
        map_release(&w.visited);
        file->places.at[i].reaches = w.reaches;
        if (w.from->function->throws)
            walk_code(&w, w.from->address, note_return);
    }
    for (size_t i = 0; i < file->places.len; i++)
        if (!out[i])
            file->places.at[kept++] = file->places.at[i];
    file->places.len = kept;
    free(out);
    vec_release(&stubs);
}

static bool is_in(const struct alloc_function *function, const char *path)
{
    const size_t all = strlen(path), end = function->path ? strlen(function->path) : 0;
    return !function->path || (all >= end && !strcmp(path + all - end, function->path));
}

/* Operators come last, and only into a file that allocates itself: others call malloc(), which counts. */
static void find_places(struct alloc_places *p, struct alloc_file *file, const struct probe_file *f,
                        const char *path)
{
    struct search s = {p, mem_array(p->functions->all.len, sizeof(bool))};
    probe_file_names(f, note_name, &s);
    for (int operators = 0; operators < 2; operators++)
        for (size_t i = 0; i < p->functions->all.len; i++) {
            const struct alloc_function *function = &p->functions->all.at[i];
            if (!s.found[i] || function->is_operator != operators || (operators && !file->allocates) ||
                !is_in(function, path))
                continue;
            add_place(file, f, function);
            file->allocates = file->allocates || function->role == ALLOC_RETURNS;
        }
    free(s.found);
    look_at_code(file, f);
}

const struct alloc_file *alloc_places_in(struct alloc_places *p, const char *path)
{
    struct stat st;
    struct probe_file f;
    struct error e = {""};
    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return NULL;
    vec_each (struct alloc_file *, known, &p->files)
        if ((*known)->dev == st.st_dev && (*known)->ino == st.st_ino)
            return *known;
    struct alloc_file *file = mem_alloc(sizeof(*file));
    *file = (struct alloc_file){.dev = st.st_dev, .ino = st.st_ino};
    *vec_push(&p->files) = file;
    if (!probe_file_open(&f, path, &e)) {
        find_places(p, file, &f, path);
        probe_file_close(&f);
    }
    return file;
}
