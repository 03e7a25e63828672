/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/kernel_modules.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>

#include "base/hash_map.h"
#include "base/read_file.h"
#include "symbol/debuginfod_servers.h"
#include "symbol/elf_file.h"
#include "symbol/module_search.h"
#include "symbol/relocatable.h"
#include "symbol/vmlinux.h"

#define NOTES_BYTES_MAX (64u << 10)
#define MODULES_MAX     65536u
#define NAME_MAX_BYTES  64u /* MODULE_NAME_LEN */

/* A section with code: where it is in the file, and in memory. */
struct section {
    char *name;
    uint64_t address, bytes;
    uint64_t loaded; /* 0: not known */
};

struct module {
    char *name;
    char *path; /* of the file that is taken; NULL: none */
    char *refused;
    bool sent;
    unsigned char build_id[SYMBOL_BUILD_ID_MAX];
    size_t build_id_len; /* the kernel's, else that of the file; 0: neither has one */
    struct function_index *functions;
    struct VEC(struct section) sections;
};

struct kernel_modules {
    char *root;
    bool running;
    struct symbol_servers *servers;
    struct module_search *search;
    struct map by_name;
    struct VEC(struct module *) all;
};

struct kernel_modules *kernel_modules_new(const struct kernel_modules_of *of)
{
    struct kernel_modules *m = mem_alloc(sizeof(*m));
    m->root = mem_strdup(of->root);
    m->running = of->running;
    m->search = module_search_new(of->root, of->release, of->vmlinux);
    return m;
}

void kernel_modules_use_servers(struct kernel_modules *m, struct symbol_servers *servers)
{
    m->servers = servers;
}

static void free_module(struct module *one)
{
    vec_each (struct section, s, &one->sections)
        free(s->name);
    vec_release(&one->sections);
    function_index_free(one->functions);
    free(one->name);
    free(one->path);
    free(one->refused);
    free(one);
}

void kernel_modules_free(struct kernel_modules *m)
{
    if (!m)
        return;
    vec_each (struct module *, one, &m->all)
        free_module(*one);
    vec_release(&m->all);
    map_release(&m->by_name);
    module_search_free(m->search);
    free(m->root);
    free(m);
}

/* ---- what the running kernel tells ---- */

static void read_build_id(const struct kernel_modules *m, struct module *one)
{
    struct buf path = BUF_INIT, notes = BUF_INIT;
    buf_printf(&path, "%s/sys/module/%s/notes/.note.gnu.build-id", m->root, one->name);
    if (m->running && !file_read(buf_str(&path), NOTES_BYTES_MAX, &notes))
        one->build_id_len = vmlinux_build_id(notes.data, notes.len, one->build_id, sizeof(one->build_id));
    buf_release(&path);
    buf_release(&notes);
}

/* "0xffffffffc0201000": where a section of the module was loaded. */
static void read_section(const struct kernel_modules *m, const struct module *one, struct section *s)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    buf_printf(&path, "%s/sys/module/%s/sections/%s", m->root, one->name, s->name);
    if (m->running && !strchr(s->name, '/') && !file_read(buf_str(&path), 64, &text))
        s->loaded = strtoull(buf_str(&text), NULL, 16);
    buf_release(&path);
    buf_release(&text);
}

/* ---- the file ---- */

static void take_sections(const struct kernel_modules *m, struct module *one, Elf *elf)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names))
        return;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(scn, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (!name || !*name || !(header.sh_flags & SHF_ALLOC) || !(header.sh_flags & SHF_EXECINSTR))
            continue;
        struct section *s = vec_push(&one->sections);
        *s = (struct section){.name = mem_strdup(name), .address = header.sh_addr, .bytes = header.sh_size};
        read_section(m, one, s);
    }
}

static void take(const struct kernel_modules *m, struct module *one, const struct symbol_object *o)
{
    const unsigned char *id = NULL;
    struct buf path = BUF_INIT;
    size_t len = one->build_id_len ? 0 : symbol_object_build_id(o, &id);
    if (len)
        memcpy(one->build_id, id, len);
    one->build_id_len += len;
    buf_printf(&path, "%s%s", o->root, o->path);
    one->path = buf_detach(&path);
    relocatable_lay_out(o->elf);
    one->functions = function_index_new(o->elf);
    take_sections(m, one, o->elf);
}

/* Takes the file if it is the module's and has debug information. */
static void try_object(const struct kernel_modules *m, struct module *one, struct symbol_object *o)
{
    if (!o)
        return;
    const bool describes = !symbol_object_has_addresses(o) && symbol_object_has_dwarf(o);
    const bool fits = !one->build_id_len || symbol_object_has_build_id(o, one->build_id, one->build_id_len);
    if (describes && fits) {
        take(m, one, o);
    } else if (describes && !one->refused) {
        one->refused = mem_strdup(o->path);
    }
    symbol_object_free(o);
}

static void try_path(const struct kernel_modules *m, struct module *one, const char *path)
{
    struct symbol_object *o;
    if (!symbol_object_open("", path, &o))
        try_object(m, one, o);
}

static void fetch(const struct kernel_modules *m, struct module *one)
{
    symbol_servers_want(m->servers, one->build_id, one->build_id_len);
    symbol_servers_wait(m->servers);
    const char *path = symbol_servers_file(m->servers, one->build_id, one->build_id_len);
    if (path)
        try_path(m, one, path);
    one->sent = one->path != NULL;
}

static void find_file(struct kernel_modules *m, struct module *one)
{
    const char *path;
    for (size_t n = 0; !one->path && (path = module_search_path(m->search, one->name, n)); n++)
        try_path(m, one, path);
    if (!one->path && one->build_id_len) {
        const struct symbol_debug_search search = {
            .root = m->root, .build_id = one->build_id, .build_id_len = one->build_id_len};
        try_object(m, one, symbol_debug_find(&search));
    }
    if (!one->path && one->build_id_len && m->servers)
        fetch(m, one);
}

static bool is_name(const char *name)
{
    return *name && strlen(name) < NAME_MAX_BYTES && *name != '.' && !strchr(name, '/');
}

/* NULL: no file is its. */
static struct module *find(struct kernel_modules *m, const char *name)
{
    bool added;
    if (!is_name(name) || m->all.len >= MODULES_MAX)
        return NULL;
    size_t at = map_put(&m->by_name, name, strlen(name), m->all.len, &added);
    if (added) {
        struct module *one = mem_alloc(sizeof(*one));
        one->name = mem_strdup(name);
        *vec_push(&m->all) = one;
        read_build_id(m, one);
        find_file(m, one);
    }
    return m->all.at[at]->path ? m->all.at[at] : NULL;
}

/* ---- places ---- */

static void set_place(const struct module *one, uint64_t address, struct kernel_module_place *out)
{
    *out = (struct kernel_module_place){.file = {.path = one->path,
                                                 .root = "",
                                                 .build_id = one->build_id,
                                                 .build_id_len = one->build_id_len,
                                                 .sent = one->sent,
                                                 .relocatable = true},
                                        .address = address};
}

enum function_found kernel_modules_find(struct kernel_modules *m, const char *module, const char *function,
                                        uint64_t offset, uint64_t bytes, struct kernel_module_place *out)
{
    uint64_t address;
    const struct module *one = find(m, module);
    enum function_found found =
        one ? function_index_find(one->functions, function, offset, bytes, &address) : FUNCTION_NONE;
    if (found == FUNCTION_ONE)
        set_place(one, address, out);
    return found;
}

bool kernel_modules_at(struct kernel_modules *m, const char *module, uint64_t address,
                       struct kernel_module_place *out)
{
    const struct module *one = find(m, module);
    if (!one)
        return false;
    vec_each (const struct section, s, &one->sections) {
        if (s->loaded && address >= s->loaded && address - s->loaded < s->bytes) {
            set_place(one, s->address + (address - s->loaded), out);
            return true;
        }
    }
    return false;
}

unsigned kernel_modules_count(struct kernel_modules *m, const char *module, const char *function)
{
    const struct module *one = find(m, module);
    return one ? function_index_count(one->functions, function) : 0;
}

void kernel_modules_add_refused(const struct kernel_modules *m, struct buf *b)
{
    size_t before = b->len;
    vec_each (struct module *const, one, &m->all)
        if ((*one)->refused && !(*one)->path)
            buf_printf(b, "%s%s is of another build of the module %s", b->len > before ? "; " : "",
                       (*one)->refused, (*one)->name);
}
