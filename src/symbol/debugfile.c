/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/elf_file.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include <gelf.h>
#include <zlib.h>

#define DEBUG_DIR "/usr/lib/debug"

static bool has_symbols(const struct symbol_object *o)
{
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(o->elf, scn));) {
        GElf_Shdr header;
        if (gelf_getshdr(scn, &header) && header.sh_type == SHT_SYMTAB && header.sh_size)
            return true;
    }
    return false;
}

static bool has_checksum(const struct symbol_object *o, uint32_t expected)
{
    size_t size = 0;
    const char *bytes = elf_rawfile(o->elf, &size);
    return bytes && crc32_z(0, (const unsigned char *)bytes, size) == expected;
}

/** The file, if it is the one that is looked for, and tells anything. */
static struct symbol_object *try_file(const struct symbol_debug_search *search, const char *root,
                                      const char *path)
{
    struct symbol_object *o;
    if (symbol_object_open(root, path, &o) != 0)
        return NULL;
    bool fits = search->build_id_len ? symbol_object_has_build_id(o, search->build_id, search->build_id_len)
                                     : has_checksum(o, search->link_crc);
    if (fits && (symbol_object_has_dwarf(o) || has_symbols(o)))
        return o;
    symbol_object_free(o);
    return NULL;
}

static void print_build_id_path(struct buf *path, const unsigned char *id, size_t len)
{
    buf_reset(path);
    buf_printf(path, DEBUG_DIR "/.build-id/%02x/", id[0]);
    for (size_t i = 1; i < len; i++)
        buf_printf(path, "%02x", id[i]);
    buf_addstr(path, ".debug");
}

static struct symbol_object *find_by_build_id(const struct symbol_debug_search *search, const char *root)
{
    if (search->build_id_len < 2 || search->build_id_len > SYMBOL_BUILD_ID_MAX)
        return NULL;
    struct buf path = BUF_INIT;
    print_build_id_path(&path, search->build_id, search->build_id_len);
    struct symbol_object *found = try_file(search, root, buf_str(&path));
    buf_release(&path);
    return found;
}

static struct symbol_object *find_by_name(const struct symbol_debug_search *search, const char *root)
{
    const char *slash = search->path ? strrchr(search->path, '/') : NULL;
    if (!slash || !search->link || !search->link[0] || strchr(search->link, '/'))
        return NULL;
    static const struct {
        const char *before, *between;
    } places[] = {{"", "/"}, {"", "/.debug/"}, {DEBUG_DIR, "/"}};
    struct symbol_object *found = NULL;
    struct buf path = BUF_INIT;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !found; i++) {
        buf_reset(&path);
        buf_addstr(&path, places[i].before);
        buf_add(&path, search->path, (size_t)(slash - search->path));
        buf_addstr(&path, places[i].between);
        buf_addstr(&path, search->link);
        found = try_file(search, root, buf_str(&path));
    }
    buf_release(&path);
    return found;
}

struct symbol_object *symbol_debug_find(const struct symbol_debug_search *search)
{
    const char *roots[2] = {search->root, ""};
    bool one = !search->root || !search->root[0] || !strcmp(search->root, "/");
    struct symbol_object *found = NULL;
    for (size_t i = one; i < 2 && !found; i++) {
        found = find_by_build_id(search, roots[i]);
        if (!found)
            found = find_by_name(search, roots[i]);
    }
    return found;
}

struct symbol_object *symbol_debug_open(const char *path, const unsigned char *build_id, size_t build_id_len)
{
    const struct symbol_debug_search search = {.build_id = build_id, .build_id_len = build_id_len};
    struct symbol_object *o = build_id_len ? try_file(&search, "", path) : NULL;
    if (o)
        o->trusted = false;
    return o;
}

struct symbol_object *symbol_debug_find_alternate(const struct symbol_object *debug, const char *name,
                                                  const unsigned char *build_id, size_t build_id_len)
{
    if (!build_id_len || build_id_len > SYMBOL_BUILD_ID_MAX)
        return NULL;
    const struct symbol_debug_search search = {.build_id = build_id, .build_id_len = build_id_len};
    const char *roots[2] = {debug->root, ""};
    struct symbol_object *found = NULL;
    struct buf path = BUF_INIT;
    const char *slash = strrchr(debug->path, '/');
    if (name[0] != '/' && slash)
        buf_add(&path, debug->path, (size_t)(slash - debug->path) + 1);
    buf_addstr(&path, name);
    for (size_t i = debug->root[0] == '\0'; i < 2 && !found; i++) {
        found = find_by_build_id(&search, roots[i]);
        if (!found)
            found = try_file(&search, roots[i], buf_str(&path));
    }
    buf_release(&path);
    return found;
}
