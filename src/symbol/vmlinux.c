/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/vmlinux.h"

#include <stdlib.h>
#include <string.h>

#include <elf.h>
#include <gelf.h>

#include "base/file.h"

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

/* The value of _stext in the file's symbol table; 0: it has none. */
static uint64_t stext_of(const struct symbol_object *o)
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
            if (name && !strcmp(name, "_stext"))
                return symbol.st_value;
        }
    }
    return 0;
}

static bool try_file(struct vmlinux *v, const char *path)
{
    struct symbol_object *o;
    if (symbol_object_open("", path, &o))
        return false;
    if (symbol_object_has_build_id(o, v->build_id, v->build_id_len))
        v->stext = stext_of(o);
    symbol_object_free(o);
    if (v->stext)
        v->path = mem_strdup(path);
    return v->stext;
}

static bool try_build_id(struct vmlinux *v, const char *root)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/usr/lib/debug/.build-id/%02x/", root, v->build_id[0]);
    for (size_t i = 1; i < v->build_id_len; i++)
        buf_printf(&path, "%02x", v->build_id[i]);
    buf_addstr(&path, ".debug");
    bool found = try_file(v, buf_str(&path));
    buf_release(&path);
    return found;
}

void vmlinux_seek(struct vmlinux *v, const char *root)
{
    static const char *const places[] = {
        "/usr/lib/debug/boot/vmlinux-%s", "/usr/lib/debug/lib/modules/%s/vmlinux",
        "/lib/modules/%s/build/vmlinux", "/lib/modules/%s/vmlinux", "/boot/vmlinux-%s"};
    struct buf path = BUF_INIT, notes = BUF_INIT, release = BUF_INIT;
    *v = (struct vmlinux){.path = NULL};
    buf_printf(&path, "%s/sys/kernel/notes", root);
    if (!file_read(buf_str(&path), NOTES_BYTES_MAX, &notes))
        v->build_id_len = vmlinux_build_id(notes.data, notes.len, v->build_id, sizeof(v->build_id));
    buf_reset(&path);
    buf_printf(&path, "%s/proc/sys/kernel/osrelease", root);
    int bad = file_read(buf_str(&path), 256, &release);
    release.data[strcspn(release.data, "\n")] = '\0';
    bool found = v->build_id_len && try_build_id(v, root);
    for (size_t i = 0; !bad && !found && v->build_id_len && i < sizeof(places) / sizeof(*places); i++) {
        const char *blank = strstr(places[i], "%s");
        buf_reset(&path);
        buf_printf(&path, "%s%.*s%s%s", root, (int)(blank - places[i]), places[i], release.data, blank + 2);
        found = try_file(v, buf_str(&path));
    }
    buf_release(&path);
    buf_release(&notes);
    buf_release(&release);
}
