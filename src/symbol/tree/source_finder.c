/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/tree/source_finder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "symbol/kallsyms.h"
#include "symbol/tree/built_files.h"
#include "symbol/tree/source_index.h"

#define NAME_BYTES 512u
#define NO_SYMBOL  UINT32_MAX
#define NEAR       64u /* symbols; between two of one object there are few that have no file */

/* In place of the number of a file. */
#define NO_FILE   (UINT32_MAX - 1) /* no file has a function of that name */
#define SEVERAL   (UINT32_MAX - 2) /* several files have one */
#define IN_HEADER (UINT32_MAX - 3) /* only headers have one */

struct source_finder {
    struct source_index *index;
    struct built_files *built;
    bool by_symbols; /* nothing but the symbols tells the architecture */
    const struct kallsyms *symbols;
    uint32_t *files;    /* of each symbol: one of the index, or one of the above; NULL: not looked up yet */
    struct map by_name; /* module, NUL, function -> its first symbol */
    uint32_t *next;     /* the next symbol of that name */
};

int source_finder_open(struct source_finder **out, const char *source, const char *cache, bool *made,
                       struct error *e)
{
    struct source_finder *f = *out = mem_alloc(sizeof(*f));
    *f = (struct source_finder){.index = NULL};
    int bad = source_index_open(&f->index, source, cache, made, e);
    if (!bad) {
        f->built = built_files_new(f->index, NULL, NULL);
        f->by_symbols = true;
        return 0;
    }
    source_finder_free(f);
    *out = NULL;
    return bad;
}

static void forget_symbols(struct source_finder *f)
{
    free(f->files);
    free(f->next);
    map_release(&f->by_name);
    f->by_name = (struct map){.slots = NULL};
    f->files = f->next = NULL;
}

void source_finder_free(struct source_finder *f)
{
    if (!f)
        return;
    forget_symbols(f);
    built_files_free(f->built);
    source_index_free(f->index);
    free(f);
}

const char *source_finder_version(const struct source_finder *f)
{
    return source_index_version(f->index);
}

/* "6.12.0" is the release of the source 6.12.0, and "6.12-rc1" that, too. */
bool source_finder_fits(const struct source_finder *f, const char *release)
{
    const char *version = source_index_version(f->index);
    size_t len = strlen(version);
    if (!len)
        return false;
    if (!strncmp(release, version, len))
        return release[len] < '0' || release[len] > '9';
    len -= len > 2 && !strcmp(version + len - 2, ".0") ? 2 : 0;
    return !strncmp(release, version, len) && (!release[len] || release[len] == '-' || release[len] == '+');
}

void source_finder_set_kernel(struct source_finder *f, const struct source_kernel *k)
{
    built_files_free(f->built);
    f->built = built_files_new(f->index, k->config, k->arch);
    f->by_symbols = !k->config && !k->arch;
    forget_symbols(f);
}

/* System calls have names for each architecture. */
static const char *symbols_arch(const struct kallsyms *k)
{
    static const struct {
        const char *begin, *arch;
    } all[] = {{"__x64_sys_", "x86"},
               {"__arm64_sys_", "arm64"},
               {"__s390x_sys_", "s390"},
               {"__riscv_sys_", "riscv"}};
    for (size_t i = 0; i < k->all.len; i++)
        for (size_t n = 0; n < sizeof(all) / sizeof(*all); n++)
            if (!strncmp(kallsyms_name(k, i), all[n].begin, strlen(all[n].begin)))
                return all[n].arch;
    return NULL;
}

void source_finder_use_symbols(struct source_finder *f, const struct kallsyms *symbols)
{
    f->symbols = symbols;
    forget_symbols(f);
    if (!f->by_symbols || !symbols)
        return;
    built_files_free(f->built);
    f->built = built_files_new(f->index, NULL, symbols_arch(symbols));
}

/* ---- names ---- */

/* "__x64_sys_open" -> "sys_open", "ext4_free_inode.part.0" -> "ext4_free_inode". */
static void plain_name(const char *function, char out[static NAME_BYTES])
{
    static const char *const begins[] = {"__x64_", "__ia32_", "__arm64_", "__s390x_", "__s390_", "__riscv_"};
    for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
        const size_t len = strlen(begins[i]);
        if (!strncmp(function, begins[i], len) &&
            (!strncmp(function + len, "sys_", 4) || !strncmp(function + len, "compat_sys_", 11)))
            function += len;
    }
    snprintf(out, NAME_BYTES, "%.*s", (int)strcspn(function, "."), function);
}

static bool is_header(const char *file)
{
    const size_t len = strlen(file);
    return len > 2 && !strcmp(file + len - 2, ".h");
}

/* How well a file fits: 0 not at all, 1 as one that may be built, 2 as one that is. */
static unsigned fitness(struct source_finder *f, uint32_t file, const char *module)
{
    const unsigned state = built_files_state(f->built, file);
    if (!*module)
        return state & BUILT_IN ? 2 : state & BUILT_MAYBE ? 1 : 0;
    if (built_files_in_module(f->built, file, module))
        return 2;
    return state & BUILT_MAYBE ? 1 : 0;
}

/* The best file, or one of the words above. `wanted`: NO_FILE, or the file that is taken if it fits at all. */
static uint32_t find_file(struct source_finder *f, const char *module, const char *function, uint32_t wanted)
{
    char name[NAME_BYTES];
    size_t n = 0;
    unsigned best = 0;
    uint32_t file = NO_FILE;
    bool in_header = false;
    plain_name(function, name);
    const struct source_function *all = source_index_find(f->index, name, &n);
    for (size_t i = 0; i < n; i++) {
        if (is_header(source_index_file(f->index, all[i].file))) {
            in_header = true;
            continue;
        }
        const unsigned fit = fitness(f, all[i].file, module);
        if (fit && all[i].file == wanted)
            return wanted;
        if (fit > best)
            file = all[i].file;
        else if (fit && fit == best && file != all[i].file)
            file = SEVERAL;
        best = fit > best ? fit : best;
    }
    if (file != NO_FILE)
        return file;
    return in_header ? IN_HEADER : NO_FILE;
}

/* Of a name that only a macro makes, the module may tell the file. */
static uint32_t find_alone(struct source_finder *f, const char *module, const char *function)
{
    const uint32_t file = find_file(f, module, function, NO_FILE);
    const uint32_t only = file == NO_FILE && *module ? built_files_only(f->built, module) : BUILT_NONE;
    return only != BUILT_NONE ? only : file;
}

/* ---- symbols ---- */

static bool is_file(uint32_t file)
{
    return file < IN_HEADER;
}

static const char *module_of(const struct source_finder *f, size_t symbol)
{
    return kallsyms_module_name(f->symbols, symbol);
}

static void add_name(struct source_finder *f, uint32_t symbol)
{
    struct buf key = BUF_INIT;
    bool added;
    buf_printf(&key, "%s%c%s", module_of(f, symbol), '\n', kallsyms_name(f->symbols, symbol));
    const size_t first = map_put(&f->by_name, buf_str(&key), key.len, symbol, &added);
    f->next[symbol] = NO_SYMBOL;
    if (!added) {
        f->next[symbol] = f->next[first];
        f->next[first] = symbol;
    }
    buf_release(&key);
}

/*
 * The functions of an object file follow one another. If several files define a name, the function is taken to be in
 * the file of a neighbour, if exactly one of the two neighbours' files defines it. If no file defines a name, because a
 * macro makes it, the function is taken to be in the file of its neighbours, if both are in the same file.
 */
static uint32_t by_neighbours(struct source_finder *f, size_t symbol, uint32_t before, uint32_t after)
{
    const char *name = kallsyms_name(f->symbols, symbol), *module = module_of(f, symbol);
    if (f->files[symbol] == NO_FILE)
        return before == after ? before : NO_FILE;
    const bool fits_before = is_file(before) && find_file(f, module, name, before) == before;
    const bool fits_after = is_file(after) && find_file(f, module, name, after) == after;
    if (fits_before && (!fits_after || before == after))
        return before;
    return fits_after && !fits_before ? after : SEVERAL;
}

/* Returns the file of that symbol, if it is near, and in the same module. */
static uint32_t near_file(const struct source_finder *f, size_t symbol, size_t other)
{
    const struct kallsyms *k = f->symbols;
    const size_t apart = symbol > other ? symbol - other : other - symbol;
    return other < k->all.len && apart <= NEAR && k->all.at[other].module == k->all.at[symbol].module
               ? f->files[other]
               : NO_FILE;
}

static void ask_neighbours(struct source_finder *f)
{
    const struct kallsyms *k = f->symbols;
    uint32_t *after = mem_alloc((k->all.len + 1) * sizeof(*after)); /* the next symbol that has a file */
    size_t before = SIZE_MAX;
    after[k->all.len] = NO_SYMBOL;
    for (size_t i = k->all.len; i--;)
        after[i] = i + 1 < k->all.len && is_file(f->files[i + 1]) ? (uint32_t)i + 1 : after[i + 1];
    for (size_t i = 0; i < k->all.len; i++) {
        if (k->all.at[i].name && (f->files[i] == SEVERAL || f->files[i] == NO_FILE))
            f->files[i] = by_neighbours(f, i, near_file(f, i, before), near_file(f, i, after[i]));
        before = is_file(f->files[i]) ? i : before;
    }
    free(after);
}

static void find_symbols(struct source_finder *f)
{
    const struct kallsyms *k = f->symbols;
    f->files = mem_alloc((k->all.len + 1) * sizeof(*f->files));
    f->next = mem_alloc((k->all.len + 1) * sizeof(*f->next));
    for (uint32_t i = 0; i < k->all.len; i++) {
        f->files[i] = NO_FILE;
        if (!k->all.at[i].name)
            continue;
        f->files[i] = find_alone(f, module_of(f, i), kallsyms_name(k, i));
        add_name(f, i);
    }
    ask_neighbours(f);
}

/* ---- what is found ---- */

static enum function_found place_of(struct source_finder *f, uint32_t file, const char *function,
                                    struct source_place *out)
{
    char name[NAME_BYTES];
    size_t n = 0;
    if (!is_file(file))
        return file == SEVERAL ? FUNCTION_SEVERAL : FUNCTION_NONE;
    plain_name(function, name);
    const struct source_function *all = source_index_find(f->index, name, &n);
    *out = (struct source_place){.file = source_index_file(f->index, file)};
    for (size_t i = 0; i < n && !out->line; i++)
        if (all[i].file == file)
            out->line = all[i].line;
    return FUNCTION_ONE;
}

static uint32_t first_symbol(struct source_finder *f, const char *module, const char *function)
{
    struct buf key = BUF_INIT;
    if (!f->symbols)
        return NO_SYMBOL;
    if (!f->files)
        find_symbols(f);
    buf_printf(&key, "%s%c%s", module, '\n', function);
    const size_t symbol = map_get(&f->by_name, buf_str(&key), key.len);
    buf_release(&key);
    return symbol == MAP_NONE ? NO_SYMBOL : (uint32_t)symbol;
}

enum function_found source_finder_find(struct source_finder *f, const char *module, const char *function,
                                       uint64_t bytes, struct source_place *out)
{
    uint32_t file = NO_FILE;
    bool known = false;
    for (uint32_t i = first_symbol(f, module, function); i != NO_SYMBOL; i = f->next[i]) {
        if (bytes && kallsyms_bytes(f->symbols, i) != bytes)
            continue;
        file = known && file != f->files[i] ? SEVERAL : f->files[i];
        known = true;
    }
    return place_of(f, known ? file : find_alone(f, module, function), function, out);
}

enum function_found source_finder_at(struct source_finder *f, uint64_t address, struct source_place *out)
{
    const size_t symbol = f->symbols ? kallsyms_find(f->symbols, address) : KALLSYMS_NONE;
    if (symbol == KALLSYMS_NONE)
        return FUNCTION_NONE;
    if (!f->files)
        find_symbols(f);
    return place_of(f, f->files[symbol], kallsyms_name(f->symbols, symbol), out);
}

bool source_finder_is_several(struct source_finder *f, const char *module, const char *function)
{
    const uint32_t first = first_symbol(f, module, function);
    return first != NO_SYMBOL && f->next[first] != NO_SYMBOL;
}
