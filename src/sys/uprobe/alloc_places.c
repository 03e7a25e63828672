/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/uprobe/alloc_places.h"

#include <string.h>
#include <sys/stat.h>

#include "base/hash_map.h"
#include "symbol/probe/probe_file.h"

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

static void add_place(struct alloc_file *file, const struct probe_file *f,
                      const struct alloc_function *function)
{
    struct alloc_place place = {.function = function};
    uint64_t bytes;
    if (probe_file_function(f, function->name, &place.address, &bytes) != PROBE_FUNCTION_ONE ||
        is_known(file, place.address))
        return;
    const struct probe_code *code = probe_file_code(f, place.address);
    if (!code)
        return;
    place.place = probe_place_choose(code->bytes, code->high - code->low, place.address - code->low, bytes);
    if (probe_file_offset(f, place.address + place.place.after, &place.offset))
        *vec_push(&file->places) = place;
}

/* Operators come last, and only into a file that allocates itself: others call malloc(), which counts. */
static void find_places(struct alloc_places *p, struct alloc_file *file, const struct probe_file *f)
{
    struct search s = {p, mem_array(p->functions->all.len, sizeof(bool))};
    probe_file_names(f, note_name, &s);
    for (int operators = 0; operators < 2; operators++)
        for (size_t i = 0; i < p->functions->all.len; i++) {
            const struct alloc_function *function = &p->functions->all.at[i];
            if (!s.found[i] || function->is_operator != operators || (operators && !file->allocates))
                continue;
            add_place(file, f, function);
            file->allocates = file->allocates || function->role == ALLOC_RETURNS;
        }
    free(s.found);
}

static bool is_wanted(const struct alloc_functions *f, const char *path)
{
    const size_t all = strlen(path), end = f->path ? strlen(f->path) : 0;
    return !f->path || (all >= end && !strcmp(path + all - end, f->path));
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
    if (is_wanted(p->functions, path) && !probe_file_open(&f, path, &e)) {
        find_places(p, file, &f);
        probe_file_close(&f);
    }
    return file;
}
