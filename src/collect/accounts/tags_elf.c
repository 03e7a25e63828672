/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/tags_file.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <elfutils/libdwelf.h>
#include <gelf.h>

#include "allium/tag.h"

#define SECTIONS_MAX 16 /* sections of descriptors; linkers make one */

/* The bytes of a section in the file. */
struct part {
    uint64_t address;
    const char *bytes;
    size_t len;
};

struct parts {
    Elf *elf;
    struct VEC(struct part) tags; /* sections of descriptors */
    bool left_out;                /* they have no bytes in the file: it has debug information only */
};

/* Returns 0 if it is a program or library for x86-64, else -ENOEXEC with a line. */
static int check_kind(Elf *elf, GElf_Ehdr *h, const char *path, struct error *e)
{
    if (elf_kind(elf) == ELF_K_AR)
        return error_set(e, ENOEXEC, "%s is an archive: use the program or library that is linked with it",
                         path);
    if (elf && elf_kind(elf) != ELF_K_ELF)
        return error_set(e, ENOEXEC, "%s is not an ELF program or library, or is truncated", path);
    if (!elf || !gelf_getehdr(elf, h))
        return error_set(e, ENOEXEC, "%s is cut short, or damaged: %s", path, elf_errmsg(-1));
    if (h->e_machine != EM_X86_64 || gelf_getclass(elf) != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return error_set(e, ENOEXEC, "%s is for another architecture: only x86-64 is supported", path);
    if (h->e_type == ET_REL)
        return error_set(e, ENOEXEC,
                         "%s is an object file: use the program or library that is linked with it", path);
    if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
        return error_set(e, ENOEXEC, "%s is not an ELF program or library", path);
    return 0;
}

/* Adds the section if it has descriptors. Returns false if it has, and its bytes cannot be read. */
static bool add_section(struct parts *p, Elf_Scn *scn, const GElf_Shdr *s, const char *name)
{
    if (strcmp(name, "allium_tags") || p->tags.len >= SECTIONS_MAX || !s->sh_size)
        return true;
    if (s->sh_type == SHT_NOBITS) {
        p->left_out = true;
        return true;
    }
    const Elf_Data *data = elf_rawdata(scn, NULL);
    if (!data || !data->d_buf)
        return false;
    *vec_push(&p->tags) = (struct part){s->sh_addr, data->d_buf, data->d_size};
    return true;
}

/* Finds the sections of descriptors. Returns false if a section cannot be read. */
static bool find_parts(struct parts *p, Elf *elf)
{
    size_t names, count = 0;
    if (elf_getshdrnum(elf, &count) || !count || elf_getshdrstrndx(elf, &names))
        return false;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr s;
        const char *name = gelf_getshdr(scn, &s) ? elf_strptr(elf, names, s.sh_name) : NULL;
        if (!name || !add_section(p, scn, &s, name))
            return false;
    }
    return true;
}

/* Finds the section that is loaded at that address. Returns false if there is none. */
static bool find_loaded(const struct parts *p, uint64_t address, struct part *loaded)
{
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(p->elf, scn));) {
        GElf_Shdr s;
        if (!gelf_getshdr(scn, &s) || s.sh_type != SHT_PROGBITS || !(s.sh_flags & SHF_ALLOC) ||
            address - s.sh_addr >= s.sh_size)
            continue;
        const Elf_Data *data = elf_rawdata(scn, NULL);
        if (data && data->d_buf && address - s.sh_addr < data->d_size) {
            *loaded = (struct part){s.sh_addr, data->d_buf, data->d_size};
            return true;
        }
    }
    return false;
}

/* Finds the three texts at that address, one behind the other. Returns false if they are not there. */
static bool find_texts(struct tags_file_tag *t, const struct parts *p, uint64_t address)
{
    const char **at[] = {&t->class, &t->name, &t->file};
    struct part texts;
    if (!find_loaded(p, address, &texts))
        return false;
    uint64_t offset = address - texts.address;
    for (size_t n = 0; n < 3; n++) {
        *at[n] = texts.bytes + offset;
        size_t len = strnlen(*at[n], texts.len - offset);
        if (len == texts.len - offset)
            return false;
        offset += len + 1;
    }
    return true;
}

/* Adds the descriptor at that address. Returns false if the bytes there are not a descriptor. */
static bool add_tag(struct tags_file *f, const struct parts *p, uint64_t address, const struct allium_tag *d)
{
    struct tags_file_tag t = {.class = "",
                              .name = "",
                              .file = "",
                              .line = d->line,
                              .code = address + offsetof(struct allium_tag, code) + (uint64_t)d->code};
    if (d->version != ALLIUM_TAG_VERSION || d->counters != ALLIUM_TAG_UNREGISTERED || d->entry || !d->code)
        return false; /* in a file, a descriptor is not registered yet */
    if (d->text && !find_texts(&t, p, address + offsetof(struct allium_tag, text) + (uint64_t)d->text))
        return false;
    *vec_push(&f->tags) = t;
    return true;
}

/* Adds the descriptors of a section. Counts each run of other bytes, except zeros, with which linkers fill gaps. */
static void read_part(struct tags_file *f, const struct parts *p, const struct part *of)
{
    static const char zeros[8];
    bool lost = false;
    for (size_t at = 0; at + sizeof(zeros) <= of->len;) {
        struct allium_tag d;
        if (at + sizeof(d) <= of->len) {
            memcpy(&d, of->bytes + at, sizeof(d));
            if (add_tag(f, p, of->address + at, &d)) {
                lost = false;
                at += sizeof(d);
                continue;
            }
        }
        bool gap = !memcmp(of->bytes + at, zeros, sizeof(zeros));
        f->not_understood += !gap && !lost;
        lost = lost || !gap;
        at += sizeof(zeros);
    }
    f->not_understood += of->len % sizeof(zeros) && !lost;
}

static int read_sections(struct tags_file *f, const struct parts *p, const char *path, struct error *e)
{
    vec_each (const struct part, part, &p->tags)
        read_part(f, p, part);
    if (f->tags.len)
        return 0;
    if (p->left_out)
        return error_set(e, ENOENT, "%s has only debug information: use the program that it belongs to",
                         path);
    if (f->not_understood)
        return error_set(e, ENOENT,
                         "%s has tags of another version of <allium/tag.h>: build it again, or use the "
                         "allium that it was built with",
                         path);
    return error_set(
        e, ENOENT,
        "%s has no tags: it is not built with <allium/tag.h> or -include allium/malloc_hooks.h, or contains "
        "no call that they tag (`new` needs <allium/operator_new.hh>, too), see allium-tags(1); for a tagged "
        "library, name its own file",
        path);
}

int tags_file_read(struct tags_file *f, Elf *elf, const char *path, struct error *e)
{
    struct parts p = {.elf = elf};
    GElf_Ehdr h;
    *f = (struct tags_file){.elf = elf};
    int bad = check_kind(elf, &h, path, e);
    if (!bad && !h.e_shoff)
        bad = error_set(e, ENOENT, "%s has no section headers, without which its tags cannot be found", path);
    if (!bad && !find_parts(&p, elf))
        bad = error_set(e, ENOEXEC, "%s is cut short, or damaged: its sections cannot be read", path);
    if (!bad)
        bad = read_sections(f, &p, path, e);
    ssize_t len = bad ? 0 : dwelf_elf_gnu_build_id(elf, &f->build_id);
    f->build_id_len = len > 0 ? (size_t)len : 0;
    vec_release(&p.tags);
    if (bad)
        tags_file_release(f);
    return bad;
}

void tags_file_release(struct tags_file *f)
{
    elf_end(f->elf);
    vec_release(&f->tags);
    *f = (struct tags_file){0};
}
