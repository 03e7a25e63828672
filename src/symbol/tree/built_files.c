/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/tree/built_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "base/vec.h"

#define DEPTH_MAX  24 /* of folders, and of objects that are made of objects */
#define UNNAMED    8u /* no word names the path */
#define NO_WORD    UINT32_MAX
#define NAME_BYTES 128u
#define STEPS_MAX  10000u /* through words, for one file */

struct built_files {
    const struct source_index *index;
    const struct source_word *words;
    size_t n_words;
    struct map config; /* "CONFIG_X" -> enum built */
    bool has_config;
    char arch[64];      /* "arch/x86/"; "": not known */
    struct map by_path; /* of what a word names -> the first such word */
    uint32_t *next;     /* the next word that names the same path */
    struct map known;   /* path -> index into path_states */
    struct VEC(unsigned) path_states;
    uint8_t *states;                 /* of files: bits, or UINT8_MAX: not looked up yet */
    struct map only;                 /* module -> index into only_files */
    struct VEC(uint32_t) only_files; /* BUILT_NONE: it has several */
    bool only_is_known;
    unsigned steps; /* of one search for the modules of a file */
};

/* ---- the configuration ---- */

static void take_config(struct built_files *b, const char *text)
{
    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        const size_t len = strcspn(at, "=\n");
        if (strncmp(at, "CONFIG_", 7) != 0 || at[len] != '=' || (at[len + 1] != 'y' && at[len + 1] != 'm'))
            continue;
        map_put(&b->config, at, len, at[len + 1] == 'm' ? BUILT_MODULE : BUILT_IN, NULL);
        b->has_config = true;
    }
}

/* Returns the folder of the architecture that the configuration is for; NULL: it does not tell. */
static const char *configured_arch(const struct built_files *b)
{
    static const struct {
        const char *option, *arch;
    } all[] = {{"CONFIG_X86", "x86"},
               {"CONFIG_ARM64", "arm64"},
               {"CONFIG_ARM", "arm"},
               {"CONFIG_PPC", "powerpc"},
               {"CONFIG_S390", "s390"},
               {"CONFIG_RISCV", "riscv"},
               {"CONFIG_LOONGARCH", "loongarch"},
               {"CONFIG_MIPS", "mips"},
               {"CONFIG_M68K", "m68k"},
               {"CONFIG_PARISC", "parisc"},
               {"CONFIG_SPARC", "sparc"},
               {"CONFIG_SUPERH", "sh"}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (map_get(&b->config, all[i].option, strlen(all[i].option)) != MAP_NONE)
            return all[i].arch;
    return NULL;
}

/* What the option of a word makes of it. */
static unsigned condition(const struct built_files *b, const struct source_word *w)
{
    const char *option = source_index_text(b->index, w->option);
    if (!*option)
        return BUILT_IN;
    if (!b->has_config)
        return BUILT_IN | BUILT_MODULE;
    const size_t value = map_get(&b->config, option, strlen(option));
    return value == MAP_NONE ? 0 : (unsigned)value;
}

/* ---- words ---- */

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strcmp(text, *words))
            return true;
    return false;
}

/* "obj-y", or in the Makefile of an architecture "core-y", whose paths begin at the top; else it is a part of "x.o". */
static bool is_from_top(const struct built_files *b, const struct source_word *w)
{
    static const char *const bases[] = {"core", "libs", "drivers", "net", "virt", "head", NULL};
    const char *folder = source_index_text(b->index, w->folder);
    return (!*folder || !strcmp(folder, b->arch)) && is_one_of(source_index_text(b->index, w->base), bases);
}

static bool is_whole(const struct built_files *b, const struct source_word *w)
{
    static const char *const bases[] = {"obj", "lib", NULL};
    return is_one_of(source_index_text(b->index, w->base), bases) || is_from_top(b, w);
}

static void index_words(struct built_files *b)
{
    b->next = mem_alloc((b->n_words + 1) * sizeof(*b->next));
    for (size_t i = 0; i < b->n_words; i++) {
        const struct source_word *w = &b->words[i];
        struct buf path = BUF_INIT;
        buf_printf(&path, "%s%s", is_from_top(b, w) ? "" : source_index_text(b->index, w->folder),
                   source_index_text(b->index, w->text));
        bool added;
        const size_t first = map_put(&b->by_path, buf_str(&path), path.len, i, &added);
        b->next[i] = NO_WORD;
        if (!added) {
            b->next[i] = b->next[first];
            b->next[first] = (uint32_t)i;
        }
        buf_release(&path);
    }
}

static uint32_t first_word(const struct built_files *b, const char *path)
{
    const size_t i = map_get(&b->by_path, path, strlen(path));
    return i == MAP_NONE ? NO_WORD : (uint32_t)i;
}

/* ---- paths: folders end with a slash, objects with ".o" ---- */

static unsigned path_state(struct built_files *b, const char *path, unsigned depth);

static unsigned folder_state(struct built_files *b, const char *folder, unsigned depth)
{
    if (!*folder || (*b->arch && !strcmp(folder, b->arch)))
        return BUILT_IN;
    unsigned state = path_state(b, folder, depth);
    if (state != UNNAMED)
        return state;
    char *above = mem_strndup(folder, strlen(folder) - 1);
    char *slash = strrchr(above, '/');
    above[slash ? slash - above + 1 : 0] = '\0';
    state = depth < DEPTH_MAX && folder_state(b, above, depth + 1) ? BUILT_MAYBE : 0;
    free(above);
    return state;
}

/* The object that a word is a part of. */
static void whole_of(const struct built_files *b, const struct source_word *w, struct buf *path)
{
    buf_printf(path, "%s%s.o", source_index_text(b->index, w->folder), source_index_text(b->index, w->base));
}

static unsigned word_state(struct built_files *b, const struct source_word *w, unsigned depth)
{
    const unsigned how = condition(b, w);
    struct buf whole = BUF_INIT;
    if (!how)
        return 0;
    if (is_whole(b, w)) {
        const unsigned above = folder_state(b, source_index_text(b->index, w->folder), depth + 1);
        return (above & BUILT_IN ? how : above & BUILT_MODULE ? BUILT_MODULE : 0u) | (above & BUILT_MAYBE);
    }
    whole_of(b, w, &whole);
    const unsigned state = path_state(b, buf_str(&whole), depth + 1);
    buf_release(&whole);
    return state == UNNAMED ? BUILT_MAYBE : state;
}

/* While a path is being looked up, its state is "not built", so that the search ends if an object contains itself. */
static unsigned path_state(struct built_files *b, const char *path, unsigned depth)
{
    uint32_t word = first_word(b, path);
    unsigned state = 0;
    bool added;
    if (word == NO_WORD)
        return UNNAMED;
    if (depth >= DEPTH_MAX)
        return BUILT_MAYBE;
    const size_t known = map_put(&b->known, path, strlen(path), b->path_states.len, &added);
    if (!added)
        return b->path_states.at[known];
    *vec_push(&b->path_states) = 0;
    for (; word != NO_WORD; word = b->next[word])
        state |= word_state(b, &b->words[word], depth);
    return b->path_states.at[known] = state;
}

/* ---- files ---- */

/* "fs/pipe.c" has its object in "fs/pipe.o". Returns false for headers. */
static bool object_of(const struct built_files *b, uint32_t file, struct buf *path)
{
    const char *name = source_index_file(b->index, file);
    const size_t len = strlen(name);
    if (len < 3 || strcmp(name + len - 2, ".c") != 0)
        return false;
    buf_printf(path, "%.*s.o", (int)(len - 2), name);
    return true;
}

static unsigned find_state(struct built_files *b, uint32_t file)
{
    const char *name = source_index_file(b->index, file);
    struct buf path = BUF_INIT;
    if (*b->arch && !strncmp(name, "arch/", 5) && strncmp(name, b->arch, strlen(b->arch)) != 0)
        return 0;
    if (!object_of(b, file, &path))
        return 0;
    unsigned state = path_state(b, buf_str(&path), 0);
    if (state == UNNAMED) {
        char *slash = strrchr(path.data, '/');
        path.data[slash ? slash - path.data + 1 : 0] = '\0';
        state = folder_state(b, path.data, 0) ? BUILT_MAYBE : 0;
    }
    buf_release(&path);
    return state;
}

unsigned built_files_state(struct built_files *b, uint32_t file)
{
    if (b->states[file] == UINT8_MAX)
        b->states[file] = (uint8_t)find_state(b, file);
    return b->states[file];
}

/* ---- modules ---- */

typedef bool (*module_found)(void *arg, const char *module);

/* Calls `found` for the name of each module that has the object, until it returns true. */
static bool modules_of(struct built_files *b, const char *object, module_found found, void *arg,
                       unsigned depth)
{
    bool done = false;
    for (uint32_t i = first_word(b, object);
         i != NO_WORD && !done && depth < DEPTH_MAX && b->steps < STEPS_MAX; i = b->next[i], b->steps++) {
        const struct source_word *w = &b->words[i];
        if (!condition(b, w))
            continue;
        if (!is_whole(b, w)) {
            struct buf whole = BUF_INIT;
            whole_of(b, w, &whole);
            done =
                strcmp(buf_str(&whole), object) != 0 && modules_of(b, buf_str(&whole), found, arg, depth + 1);
            buf_release(&whole);
            continue;
        }
        const char *slash = strrchr(object, '/'), *base = slash ? slash + 1 : object;
        char name[NAME_BYTES];
        snprintf(name, sizeof(name), "%.*s", (int)(strlen(base) - 2), base);
        for (char *at = name; *at; at++)
            *at = *at == '-' ? '_' : *at;
        done = found(arg, name);
    }
    return done;
}

static bool file_modules(struct built_files *b, uint32_t file, module_found found, void *arg)
{
    struct buf object = BUF_INIT;
    b->steps = 0;
    const bool done = built_files_state(b, file) && object_of(b, file, &object) &&
                      modules_of(b, buf_str(&object), found, arg, 0);
    buf_release(&object);
    return done;
}

static bool is_module(void *arg, const char *module)
{
    return !strcmp(arg, module);
}

bool built_files_in_module(struct built_files *b, uint32_t file, const char *module)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "%s", module);
    return file_modules(b, file, is_module, name);
}

struct note {
    struct built_files *b;
    uint32_t file;
};

static bool note_only(void *arg, const char *module)
{
    const struct note *n = arg;
    struct built_files *b = n->b;
    bool added;
    const size_t at = map_put(&b->only, module, strlen(module), b->only_files.len, &added);
    if (added)
        *vec_push(&b->only_files) = n->file;
    else if (b->only_files.at[at] != n->file)
        b->only_files.at[at] = BUILT_NONE;
    return false;
}

uint32_t built_files_only(struct built_files *b, const char *module)
{
    for (uint32_t i = 0; !b->only_is_known && i < source_index_files(b->index); i++)
        file_modules(b, i, note_only, &(struct note){b, i});
    b->only_is_known = true;
    const size_t at = map_get(&b->only, module, strlen(module));
    return at == MAP_NONE ? BUILT_NONE : b->only_files.at[at];
}

struct built_files *built_files_new(const struct source_index *s, const char *config, const char *arch)
{
    struct built_files *b = mem_alloc(sizeof(*b));
    *b = (struct built_files){.index = s};
    b->words = source_index_words(s, &b->n_words);
    if (config)
        take_config(b, config);
    arch = arch ? arch : configured_arch(b);
    if (arch)
        snprintf(b->arch, sizeof(b->arch), "arch/%s/", arch);
    b->states = mem_alloc(source_index_files(s) + 1);
    memset(b->states, UINT8_MAX, source_index_files(s));
    index_words(b);
    return b;
}

void built_files_free(struct built_files *b)
{
    if (!b)
        return;
    map_release(&b->config);
    map_release(&b->by_path);
    map_release(&b->known);
    map_release(&b->only);
    vec_release(&b->path_states);
    vec_release(&b->only_files);
    free(b->next);
    free(b->states);
    free(b);
}
