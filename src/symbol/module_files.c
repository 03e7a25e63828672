/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/module_files.h"

#include <errno.h>
#include <string.h>

#include <elfutils/libdwelf.h>

#include "symbol/relocatable.h"

static const char deleted[] = " (deleted)";

void symbol_image_init(struct symbol_image *image, const struct symbol_module *module)
{
    *image = (struct symbol_image){.path = mem_strdup(module->path ? module->path : "")};
    image->sent = module->sent;
    image->relocatable = module->relocatable;
    image->unusable = module->build_id_len > sizeof(image->build_id);
    if (module->build_id_len && !image->unusable) {
        memcpy(image->build_id, module->build_id, module->build_id_len);
        image->build_id_len = module->build_id_len;
    }
}

void symbol_image_release(struct symbol_image *image)
{
    symbol_scopes_free(image->scopes);
    symbol_table_free(image->table);
    if (!image->relocated)
        dwarf_end(image->dwarf);
    relocated_free(image->relocated);
    dwarf_end(image->alternate_dwarf);
    symbol_object_free(image->main);
    symbol_object_free(image->debug);
    symbol_object_free(image->alternate);
    free(image->path);
    *image = (struct symbol_image){0};
}

static bool is_here(const char *root)
{
    return !root || !root[0] || !strcmp(root, "/");
}

/** Opens one candidate for the module's own file. Keeps the first interesting error in `*err`. */
static bool try_main(struct symbol_image *image, const char *root, const char *path, int *err)
{
    struct symbol_object *o;
    int opened = symbol_object_open(root, path, &o);
    if (opened == 0) {
        if (symbol_object_has_addresses(o) == image->relocatable)
            opened = -ENOEXEC;
        else if (image->build_id_len && !symbol_object_has_build_id(o, image->build_id, image->build_id_len))
            opened = -ESTALE;
        o->trusted = o->trusted && !image->sent;
        if (opened == 0)
            image->main = o;
        else
            symbol_object_free(o);
    }
    if (opened == 0)
        return true;
    if (!*err || *err == -ENOENT || opened == -ESTALE)
        *err = opened;
    return false;
}

/** Another mount namespace's path may name another file here: without a build id, only if nothing else is left. */
static bool find_main(struct symbol_image *image, const char *root, int *err)
{
    if (try_main(image, root, image->path, err))
        return true;
    bool elsewhere = !is_here(root);
    bool here_too = elsewhere && (image->build_id_len || !symbol_object_root_exists(root));
    if (here_too && try_main(image, "", image->path, err))
        return true;
    size_t len = strlen(image->path), tail = sizeof(deleted) - 1;
    if (!image->build_id_len || len <= tail || strcmp(image->path + len - tail, deleted) != 0)
        return false;
    char *path = mem_strndup(image->path, len - tail);
    bool found = try_main(image, root, path, err) || (elsewhere && try_main(image, "", path, err));
    free(path);
    return found;
}

static void find_debug(struct symbol_image *image, const char *root, const char *link, uint32_t crc)
{
    if (image->debug)
        return;
    const struct symbol_debug_search search = {.root = root,
                                               .path = image->main ? image->main->path : image->path,
                                               .build_id = image->build_id,
                                               .build_id_len = image->build_id_len,
                                               .link = link,
                                               .link_crc = crc};
    image->debug = symbol_debug_find(&search);
}

int symbol_image_locate(struct symbol_image *image, const char *root)
{
    if (image->main || image->debug)
        return 0;
    int err = 0;
    if (image->path[0] != '/')
        return -ENOENT;
    if (image->unusable)
        return -ESTALE;
    if (find_main(image, root, &err)) {
        const unsigned char *bits;
        size_t len = image->build_id_len ? 0 : symbol_object_build_id(image->main, &bits);
        if (len)
            memcpy(image->build_id, bits, len);
        image->build_id_len += len;
        return 0;
    }
    if (image->build_id_len)
        find_debug(image, root, NULL, 0);
    return image->debug ? 0 : err;
}

/** dwz moves what several files share into one more file. Without it, strings and types are missing. */
static bool open_alternate(struct symbol_image *image, const struct symbol_object *o)
{
    const char *name = NULL;
    const void *id = NULL;
    ssize_t len = dwelf_dwarf_gnu_debugaltlink(image->dwarf, &name, &id);
    if (len <= 0)
        return true;
    if (!image->alternate)
        image->alternate = symbol_debug_find_alternate(o, name, id, (size_t)len);
    if (image->alternate)
        image->alternate_dwarf = dwarf_begin_elf(image->alternate->elf, DWARF_C_READ, NULL);
    if (image->alternate_dwarf)
        dwarf_setalt(image->dwarf, image->alternate_dwarf);
    return image->alternate_dwarf != NULL;
}

static void open_dwarf(struct symbol_image *image, const struct symbol_object *o, struct symbol_names *names)
{
    if (!symbol_object_has_dwarf(o))
        return;
    if (image->relocatable) {
        image->relocated = relocated_new(o->elf);
        image->dwarf = image->relocated ? relocated_dwarf(image->relocated) : NULL;
    } else {
        image->dwarf = dwarf_begin_elf(o->elf, DWARF_C_READ, NULL);
    }
    if (!image->dwarf)
        return;
    image->partial = !open_alternate(image, o);
    /* libdw would open whatever path a stranger's file names as its missing part, be it a pipe. */
    if (image->partial && !o->trusted)
        return;
    image->scopes = symbol_scopes_new(image->dwarf, image->table, names, o->trusted);
}

/** The separate debug file, with what names it in the module's own file. */
static void find_linked_debug(struct symbol_image *image, const char *root, const char **link)
{
    GElf_Word crc = 0;
    *link = image->main ? dwelf_elf_gnu_debuglink(image->main->elf, &crc) : NULL;
    if (*link || image->build_id_len)
        find_debug(image, root, *link, crc);
}

bool symbol_image_lacks_debug(struct symbol_image *image, const char *root)
{
    const char *link;
    if (image->main && symbol_object_has_dwarf(image->main))
        return false;
    find_linked_debug(image, root, &link);
    return !image->debug;
}

void symbol_image_load(struct symbol_image *image, const char *root, struct symbol_names *names)
{
    if (image->table)
        return;
    const struct symbol_object *described = NULL;
    if (image->main && symbol_object_has_dwarf(image->main)) {
        image->origin.kind = SYMBOL_ORIGIN_SELF;
        described = image->main;
    } else {
        const char *link;
        find_linked_debug(image, root, &link);
        image->origin.link = link ? symbol_names_store(names, link) : NULL;
        described = image->debug;
        if (described) {
            image->origin.kind = SYMBOL_ORIGIN_SEPARATE;
            image->origin.size_bytes = described->size_bytes;
            image->origin.mtime_ns = described->mtime_ns;
        }
    }
    if (image->relocatable && image->main)
        relocatable_lay_out(image->main->elf);
    if (image->relocatable && image->debug)
        relocatable_lay_out(image->debug->elf);
    image->table = symbol_table_new(image->main ? image->main->elf : NULL,
                                    image->debug ? image->debug->elf : NULL, names);
    if (described)
        open_dwarf(image, described, names);
}

bool symbol_image_origin_holds(struct symbol_image *image, const char *root,
                               const struct symbol_origin *origin)
{
    if (origin->kind == SYMBOL_ORIGIN_SELF)
        return true;
    find_debug(image, root, origin->link, 0);
    if (!image->debug)
        return true;
    return origin->kind == SYMBOL_ORIGIN_SEPARATE && origin->size_bytes == image->debug->size_bytes &&
           origin->mtime_ns == image->debug->mtime_ns;
}

void symbol_image_find(struct symbol_image *image, uint64_t address, struct symbol_frame_list *out)
{
    size_t first = out->len;
    bool described = image->scopes && symbol_scopes_find(image->scopes, address, out);
    struct symbol_frame *last = described ? &out->at[out->len - 1] : NULL;
    if (last && last->function)
        return;
    const char *name = symbol_table_find(image->table, address);
    if (!name)
        out->len = first; /* a line without a function helps nobody */
    else if (last)
        last->function = name;
    else
        *vec_push(out) = (struct symbol_frame){.function = name};
}
