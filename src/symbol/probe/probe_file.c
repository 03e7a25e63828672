/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/probe/probe_file.h"

#include <errno.h>
#include <string.h>

#include <gelf.h>

#define VERSION_HIDDEN 0x8000u
#define NAME_MOST      4096u

static void read_codes(struct probe_file *f)
{
    size_t count = 0;
    elf_getphdrnum(f->object->elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(f->object->elf, (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
            continue;
        Elf_Data *data = elf_getdata_rawchunk(f->object->elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
        if (data && data->d_buf && data->d_size == ph.p_filesz)
            *vec_push(&f->codes) = (struct probe_code){ph.p_vaddr, ph.p_vaddr + ph.p_filesz, data->d_buf};
    }
}

int probe_file_open(struct probe_file *f, const char *path, struct error *e)
{
    GElf_Ehdr h;
    *f = (struct probe_file){NULL};
    const int bad = symbol_object_open("", path, &f->object);
    if (bad == -ENOEXEC)
        return error_set(e, ENOEXEC, "%s is not an ELF program or library", path);
    if (bad)
        return error_set(e, -bad, "cannot read %s: %s", path, strerror(-bad));
    if (!symbol_object_has_addresses(f->object) || !gelf_getehdr(f->object->elf, &h) ||
        h.e_machine != EM_X86_64 || gelf_getclass(f->object->elf) != ELFCLASS64) {
        probe_file_close(f);
        return error_set(e, ENOEXEC, "%s is not a program or library for x86-64", path);
    }
    struct symbol_debug_search search = {.root = "", .path = f->object->path};
    search.build_id_len = symbol_object_build_id(f->object, &search.build_id);
    if (search.build_id_len)
        f->debug = symbol_debug_find(&search);
    read_codes(f);
    return 0;
}

void probe_file_close(struct probe_file *f)
{
    vec_release(&f->codes);
    symbol_object_free(f->debug);
    symbol_object_free(f->object);
    *f = (struct probe_file){NULL};
}

/* ---- symbols ---- */

struct table {
    Elf_Data *symbols, *versions; /* versions: of .dynsym; NULL: there are none */
    Elf *elf;
    GElf_Word strings;
    size_t n;
    bool is_exported;
};

/* Sets *t to the section's symbols, if it has any. */
static bool open_table(Elf *elf, Elf_Scn *section, struct table *t)
{
    GElf_Shdr h;
    if (!gelf_getshdr(section, &h) || (h.sh_type != SHT_SYMTAB && h.sh_type != SHT_DYNSYM) || !h.sh_entsize)
        return false;
    *t = (struct table){.elf = elf, .strings = h.sh_link, .is_exported = h.sh_type == SHT_DYNSYM};
    t->symbols = elf_getdata(section, NULL);
    t->n = t->symbols ? t->symbols->d_size / h.sh_entsize : 0;
    Elf_Scn *other = NULL;
    while (t->is_exported && !t->versions && (other = elf_nextscn(elf, other)))
        if (gelf_getshdr(other, &h) && h.sh_type == SHT_GNU_versym)
            t->versions = elf_getdata(other, NULL);
    return t->n > 0;
}

struct function {
    const char *name;
    size_t name_len; /* without a version */
    uint64_t address, bytes;
    bool is_chosen;  /* STT_GNU_IFUNC */
    bool is_default; /* exported, and not only as an older version */
};

static bool read_function(const struct table *t, size_t at, struct function *f)
{
    GElf_Sym symbol;
    GElf_Versym version = 0;
    if (!gelf_getsym(t->symbols, (int)at, &symbol) || symbol.st_shndx == SHN_UNDEF || !symbol.st_value ||
        (GELF_ST_TYPE(symbol.st_info) != STT_FUNC && GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC))
        return false;
    f->name = elf_strptr(t->elf, t->strings, symbol.st_name);
    if (!f->name || !*f->name || strlen(f->name) > NAME_MOST)
        return false;
    f->name_len = strcspn(f->name, "@");
    f->address = symbol.st_value;
    f->bytes = symbol.st_size;
    f->is_chosen = GELF_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC;
    f->is_default = t->is_exported && !(t->versions && gelf_getversym(t->versions, (int)at, &version) &&
                                        version & VERSION_HIDDEN);
    return true;
}

typedef void function_fn(void *arg, const struct function *f);

static void each_of_table(const struct table *t, function_fn *fn, void *arg)
{
    struct function found;
    for (size_t i = 0; i < t->n; i++)
        if (read_function(t, i, &found))
            fn(arg, &found);
}

/* Calls `fn` for each function of the file and of its debug file. */
static void each_function(const struct probe_file *f, function_fn *fn, void *arg)
{
    Elf *const files[] = {f->object->elf, f->debug ? f->debug->elf : NULL};
    for (int i = 0; i < 2 && files[i]; i++) {
        Elf_Scn *section = NULL;
        struct table t;
        while ((section = elf_nextscn(files[i], section)))
            if (open_table(files[i], section, &t))
                each_of_table(&t, fn, arg);
    }
}

struct search {
    const char *name;
    size_t len;
    struct function found;
    unsigned n; /* functions of that name at different addresses, without a default */
};

static void compare(void *arg, const struct function *f)
{
    struct search *s = arg;
    if (f->name_len != s->len || memcmp(f->name, s->name, s->len) || s->found.is_default)
        return;
    s->n += !s->n || f->is_default || f->address != s->found.address;
    if (f->is_default)
        s->n = 1;
    if (!s->found.name || f->is_default)
        s->found = *f;
}

enum probe_function probe_file_function(const struct probe_file *f, const char *name, uint64_t *address,
                                        uint64_t *bytes)
{
    struct search s = {.name = name, .len = strlen(name)};
    each_function(f, compare, &s);
    *address = s.found.address;
    *bytes = s.found.bytes;
    return !s.n                ? PROBE_FUNCTION_NONE
           : s.n > 1           ? PROBE_FUNCTION_SEVERAL
           : s.found.is_chosen ? PROBE_FUNCTION_CHOSEN
                               : PROBE_FUNCTION_ONE;
}

struct listing {
    void (*fn)(void *arg, const char *name);
    void *arg;
};

static void list(void *arg, const struct function *f)
{
    const struct listing *l = arg;
    char *name = mem_strndup(f->name, f->name_len);
    l->fn(l->arg, name);
    free(name);
}

void probe_file_names(const struct probe_file *f, void (*fn)(void *arg, const char *name), void *arg)
{
    struct listing l = {fn, arg};
    each_function(f, list, &l);
}

const struct probe_code *probe_file_code(const struct probe_file *f, uint64_t address)
{
    vec_each (const struct probe_code, code, &f->codes)
        if (address >= code->low && address < code->high)
            return code;
    return NULL;
}

bool probe_file_offset(const struct probe_file *f, uint64_t address, uint64_t *offset)
{
    size_t count = 0;
    elf_getphdrnum(f->object->elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(f->object->elf, (int)i, &ph) || ph.p_type != PT_LOAD || address < ph.p_vaddr ||
            address - ph.p_vaddr >= ph.p_filesz)
            continue;
        *offset = address - ph.p_vaddr + ph.p_offset;
        return true;
    }
    return false;
}
