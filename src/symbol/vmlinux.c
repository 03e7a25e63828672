/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/vmlinux.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>
#include <gelf.h>

#include "base/read_file.h"
#include "symbol/kernel_modules.h"

#define NOTES_BYTES_MAX (64u << 10)

void vmlinux_release(struct vmlinux *v)
{
    free(v->path);
    kernel_modules_free(v->modules);
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

/* ---- what the file tells ---- */

/* "Linux version 6.12.0-1-amd64 (debian-kernel@..." */
static void take_banner(struct vmlinux *v, Elf *elf, const GElf_Sym *symbol)
{
    static const char begin[] = "Linux version ";
    GElf_Shdr section;
    Elf_Scn *scn = symbol->st_shndx < SHN_LORESERVE ? elf_getscn(elf, symbol->st_shndx) : NULL;
    Elf_Data *data =
        scn && gelf_getshdr(scn, &section) && section.sh_type == SHT_PROGBITS ? elf_rawdata(scn, NULL) : NULL;
    if (!data || !data->d_buf || symbol->st_value < section.sh_addr ||
        symbol->st_value - section.sh_addr >= data->d_size)
        return;
    const char *text = (const char *)data->d_buf + (symbol->st_value - section.sh_addr);
    size_t room = data->d_size - (size_t)(text - (const char *)data->d_buf), len = sizeof(begin) - 1;
    if (room <= len || memcmp(text, begin, len) != 0)
        return;
    for (size_t i = 0; len < room && (unsigned char)text[len] > ' ' && (unsigned char)text[len] < 0x7f &&
                       i + 1 < sizeof(v->release);
         i++, len++)
        v->release[i] = text[len];
}

static void take_symbol(struct vmlinux *v, Elf *elf, const char *name, const GElf_Sym *symbol)
{
    if (!strcmp(name, "_stext"))
        v->stext = symbol->st_value;
    else if (!strcmp(name, "start_kernel"))
        v->in_init_main = symbol->st_value;
    else if (!strcmp(name, "linux_banner"))
        take_banner(v, elf, symbol);
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
                take_symbol(v, o->elf, name, &symbol);
        }
    }
}

static int read_object(struct vmlinux *v, const struct symbol_object *o, struct error *e)
{
    const unsigned char *id = NULL;
    v->build_id_len = symbol_object_build_id(o, &id);
    if (v->build_id_len)
        memcpy(v->build_id, id, v->build_id_len);
    v->unchecked = true;
    if (!symbol_object_has_addresses(o))
        return error_set(e, ENOEXEC, "%s is not a linked ELF file: use the vmlinux of the kernel", o->path);
    if (!symbol_object_has_dwarf(o))
        return error_set(e, ENODATA, "%s has no debug information (DWARF)", o->path);
    read_symbols(v, o);
    return v->stext ? 0
                    : error_set(e, ENODATA,
                                "%s has no symbol _stext, which each kernel image has: use the vmlinux of "
                                "the kernel",
                                o->path);
}

/* ---- whose it is ---- */

int vmlinux_check(struct vmlinux *v, const struct kernel_identity *kernel, struct error *e)
{
    const bool ids = v->build_id_len && kernel->build_id_len;
    const bool releases = *v->release && *kernel->release;
    if (ids && (v->build_id_len != kernel->build_id_len ||
                memcmp(v->build_id, kernel->build_id, v->build_id_len) != 0))
        return error_set(e, ESTALE, "%s belongs to another kernel: its build ID is not that of the %s",
                         v->path, kernel->of);
    if (!ids && releases && strcmp(v->release, kernel->release) != 0)
        return error_set(e, ESTALE, "%s belongs to another kernel: it is of %s, and the %s of %s", v->path,
                         v->release, kernel->of, kernel->release);
    v->unchecked = !ids && !releases;
    return 0;
}

/* `running`: /sys and /lib below `root` tell of its modules. */
static void find_modules(struct vmlinux *v, const char *root, const char *release, bool running)
{
    v->modules = kernel_modules_new(&(struct kernel_modules_of){
        .root = root, .release = release, .vmlinux = v->path, .running = running});
}

static int try_file(struct vmlinux *v, const char *path, const struct kernel_identity *kernel,
                    struct error *e)
{
    struct symbol_object *o;
    *v = (struct vmlinux){.path = NULL};
    int bad = symbol_object_open("", path, &o);
    if (bad)
        return error_set(e, -bad, "%s: %s", path, bad == -ENOEXEC ? "not an ELF file" : strerror(-bad));
    v->path = mem_strdup(path);
    bad = read_object(v, o, e);
    symbol_object_free(o);
    if (!bad && kernel)
        bad = vmlinux_check(v, kernel, e);
    if (bad)
        vmlinux_release(v);
    return bad;
}

static void read_release(const char *root, char *out, size_t room)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    buf_printf(&path, "%s/proc/sys/kernel/osrelease", root);
    size_t len = file_read(buf_str(&path), room - 1, &text) ? 0 : strcspn(buf_str(&text), "\n");
    memcpy(out, buf_str(&text), len);
    out[len] = '\0';
    buf_release(&path);
    buf_release(&text);
}

static void read_running(struct kernel_identity *k, const char *root)
{
    *k = (struct kernel_identity){.of = "running kernel"};
    k->build_id_len = vmlinux_kernel_build_id(root, k->build_id);
    read_release(root, k->release, sizeof(k->release));
}

int vmlinux_open(struct vmlinux *v, const char *root, const char *path, struct error *e)
{
    struct kernel_identity running;
    read_running(&running, root);
    int bad = try_file(v, path, &running, e);
    if (!bad)
        find_modules(v, root, running.release, true);
    return bad;
}

int vmlinux_open_any(struct vmlinux *v, const char *path, struct error *e)
{
    int bad = try_file(v, path, NULL, e);
    if (!bad)
        find_modules(v, "", v->release, false);
    return bad;
}

static void print_build_id_path(struct buf *path, const char *root, const unsigned char *id, size_t len)
{
    buf_printf(path, "%s/usr/lib/debug/.build-id/%02x/", root, id[0]);
    for (size_t i = 1; i < len; i++)
        buf_printf(path, "%02x", id[i]);
    buf_addstr(path, ".debug");
}

/* One whose build id cannot be compared is not taken: only if somebody names it. */
static bool try_place(struct vmlinux *v, const char *path, const struct kernel_identity *kernel)
{
    if (try_file(v, path, kernel, NULL))
        return false;
    if (!v->build_id_len)
        vmlinux_release(v);
    return v->path;
}

void vmlinux_seek(struct vmlinux *v, const char *root)
{
    static const char *const places[] = {
        "/usr/lib/debug/boot/vmlinux-%s", "/usr/lib/debug/lib/modules/%s/vmlinux",
        "/lib/modules/%s/build/vmlinux", "/lib/modules/%s/vmlinux", "/boot/vmlinux-%s"};
    struct buf path = BUF_INIT;
    struct kernel_identity k;
    read_running(&k, root);
    *v = (struct vmlinux){.path = NULL};
    if (k.build_id_len)
        print_build_id_path(&path, root, k.build_id, k.build_id_len);
    bool found = k.build_id_len && try_place(v, buf_str(&path), &k);
    for (size_t i = 0; *k.release && k.build_id_len && !found && i < sizeof(places) / sizeof(*places); i++) {
        const char *blank = strstr(places[i], "%s");
        buf_reset(&path);
        buf_printf(&path, "%s%.*s%s%s", root, (int)(blank - places[i]), places[i], k.release, blank + 2);
        found = try_place(v, buf_str(&path), &k);
    }
    if (found)
        find_modules(v, root, k.release, true);
    buf_release(&path);
}
