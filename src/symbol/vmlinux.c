/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/vmlinux.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>
#include <gelf.h>

#include "base/read_file.h"

#define NOTES_BYTES_MAX (64u << 10)

void vmlinux_release(struct vmlinux *v)
{
    free(v->path);
    *v = (struct vmlinux){.path = NULL};
}

static size_t padded(size_t len)
{
    return (len + 3) & ~(size_t)3;
}

size_t vmlinux_build_id(const void *notes, size_t len, unsigned char *out, size_t max)
{
    const unsigned char *at = notes;
    Elf64_Nhdr note;
    while (len >= sizeof(note)) {
        memcpy(&note, at, sizeof(note));
        size_t name = padded(note.n_namesz), bytes = note.n_descsz;
        at += sizeof(note);
        len -= sizeof(note);
        if (note.n_namesz > len || name > len || bytes > len - name)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(at, "GNU", 4)) {
            if (bytes <= max)
                memcpy(out, at + name, bytes);
            return bytes <= max ? bytes : 0;
        }
        size_t all = name + padded(bytes);
        all = all < len ? all : len;
        at += all;
        len -= all;
    }
    return 0;
}

size_t vmlinux_kernel_build_id(const char *root, unsigned char out[static SYMBOL_BUILD_ID_MAX])
{
    struct buf path = BUF_INIT, notes = BUF_INIT;
    size_t len = 0;
    buf_printf(&path, "%s/sys/kernel/notes", root);
    if (!file_read(buf_str(&path), NOTES_BYTES_MAX, &notes))
        len = vmlinux_build_id(notes.data, notes.len, out, SYMBOL_BUILD_ID_MAX);
    buf_release(&path);
    buf_release(&notes);
    return len;
}

static void take_symbol(struct vmlinux *v, const char *name, uint64_t value)
{
    if (!strcmp(name, "_stext"))
        v->stext = value;
    else if (!strcmp(name, "start_kernel"))
        v->in_init_main = value;
}

static void read_symbols(struct vmlinux *v, const struct symbol_object *o)
{
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(o->elf, scn));) {
        GElf_Shdr header;
        if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_SYMTAB || !header.sh_entsize)
            continue;
        Elf_Data *data = elf_getdata(scn, NULL);
        for (size_t i = 0; data && i < header.sh_size / header.sh_entsize; i++) {
            GElf_Sym symbol;
            const char *name = gelf_getsym(data, (int)i, &symbol)
                                   ? elf_strptr(o->elf, header.sh_link, symbol.st_name)
                                   : NULL;
            if (name)
                take_symbol(v, name, symbol.st_value);
        }
    }
}

/* Is it the kernel's of this build id (none: it does not tell), and does it say enough? */
static int check_object(struct vmlinux *v, const struct symbol_object *o, const unsigned char *kernel_id,
                        size_t kernel_id_len, struct error *e)
{
    const unsigned char *id = NULL;
    v->build_id_len = symbol_object_build_id(o, &id);
    if (v->build_id_len)
        memcpy(v->build_id, id, v->build_id_len);
    v->unchecked = !v->build_id_len || !kernel_id_len;
    if (!v->unchecked && !symbol_object_has_build_id(o, kernel_id, kernel_id_len))
        return error_set(e, ESTALE,
                         "%s belongs to another kernel: its build ID is not that of the running kernel",
                         o->path);
    if (!symbol_object_has_addresses(o))
        return error_set(e, ENOEXEC, "%s is not a linked ELF file: use the vmlinux of the running kernel",
                         o->path);
    if (!symbol_object_has_dwarf(o))
        return error_set(e, ENODATA, "%s has no debug information (DWARF)", o->path);
    read_symbols(v, o);
    return v->stext ? 0
                    : error_set(e, ENODATA,
                                "%s has no symbol _stext, which each kernel image has: use the vmlinux of "
                                "the running kernel",
                                o->path);
}

static int try_file(struct vmlinux *v, const char *path, const unsigned char *kernel_id, size_t kernel_id_len,
                    struct error *e)
{
    struct symbol_object *o;
    *v = (struct vmlinux){.path = NULL};
    int bad = symbol_object_open("", path, &o);
    if (bad)
        return error_set(e, -bad, "%s: %s", path, bad == -ENOEXEC ? "not an ELF file" : strerror(-bad));
    bad = check_object(v, o, kernel_id, kernel_id_len, e);
    symbol_object_free(o);
    if (bad)
        *v = (struct vmlinux){.path = NULL};
    else
        v->path = mem_strdup(path);
    return bad;
}

int vmlinux_open(struct vmlinux *v, const char *root, const char *path, struct error *e)
{
    unsigned char id[SYMBOL_BUILD_ID_MAX];
    return try_file(v, path, id, vmlinux_kernel_build_id(root, id), e);
}

static void print_build_id_path(struct buf *path, const char *root, const unsigned char *id, size_t len)
{
    buf_printf(path, "%s/usr/lib/debug/.build-id/%02x/", root, id[0]);
    for (size_t i = 1; i < len; i++)
        buf_printf(path, "%02x", id[i]);
    buf_addstr(path, ".debug");
}

/* One that cannot be compared is not taken: only if somebody names it. */
static bool try_place(struct vmlinux *v, const char *path, const unsigned char *id, size_t len)
{
    if (try_file(v, path, id, len, NULL))
        return false;
    if (v->unchecked)
        vmlinux_release(v);
    return v->path;
}

void vmlinux_seek(struct vmlinux *v, const char *root)
{
    static const char *const places[] = {
        "/usr/lib/debug/boot/vmlinux-%s", "/usr/lib/debug/lib/modules/%s/vmlinux",
        "/lib/modules/%s/build/vmlinux", "/lib/modules/%s/vmlinux", "/boot/vmlinux-%s"};
    struct buf path = BUF_INIT, release = BUF_INIT;
    unsigned char id[SYMBOL_BUILD_ID_MAX];
    size_t len = vmlinux_kernel_build_id(root, id);
    *v = (struct vmlinux){.path = NULL};
    buf_printf(&path, "%s/proc/sys/kernel/osrelease", root);
    int bad = file_read(buf_str(&path), 256, &release);
    size_t name = bad ? 0 : strcspn(release.data, "\n");
    buf_reset(&path);
    if (len)
        print_build_id_path(&path, root, id, len);
    bool found = len && try_place(v, buf_str(&path), id, len);
    for (size_t i = 0; name && len && !found && i < sizeof(places) / sizeof(*places); i++) {
        const char *blank = strstr(places[i], "%s");
        buf_reset(&path);
        buf_printf(&path, "%s%.*s%.*s%s", root, (int)(blank - places[i]), places[i], (int)name, release.data,
                   blank + 2);
        found = try_place(v, buf_str(&path), id, len);
    }
    buf_release(&path);
    buf_release(&release);
}
