/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/function_index.h"

#include <stdlib.h>
#include <string.h>

#include <gelf.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "base/vec.h"

#define PADDING_MOST 64u /* between two functions: alignment, and room for patches */
#define NONE         SIZE_MAX

struct function {
    uint64_t address;
    uint64_t bytes; /* of the code, as the file has it; 0: not known */
    uint64_t room;  /* to the next symbol */
    size_t same;    /* another one of this name, or NONE */
    bool is_last;   /* of its section: the kernel's next symbol may be anywhere */
};

/* A symbol while the file is read. */
struct symbol {
    uint64_t address, bytes, section_end;
    const char *name;
};

struct function_index {
    struct VEC(struct function) all;
    struct map by_name; /* the first of them */
};

/* The kernel leaves them out of its own table. */
static bool is_left_out(const char *name)
{
    static const char *const heads[] = {"$", ".L", "L0\001", "__crc_", "__kcfi_typeid_", "__efistub_"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
        if (!strncmp(name, heads[i], strlen(heads[i])))
            return true;
    return !*name;
}

struct symbols_of_file VEC(struct symbol);

static void add_symbol(struct symbols_of_file *all, Elf *elf, const GElf_Sym *s, const char *name,
                       bool relocatable)
{
    GElf_Shdr section;
    const int type = GELF_ST_TYPE(s->st_info);
    Elf_Scn *scn = type == STT_FUNC || type == STT_NOTYPE ? elf_getscn(elf, s->st_shndx) : NULL;
    if (!name || is_left_out(name) || s->st_shndx == SHN_UNDEF || s->st_shndx >= SHN_LORESERVE || !scn ||
        !gelf_getshdr(scn, &section) || !(section.sh_flags & SHF_EXECINSTR))
        return;
    *vec_push(all) = (struct symbol){.address = s->st_value + (relocatable ? section.sh_addr : 0),
                                     .bytes = s->st_size,
                                     .section_end = section.sh_addr + section.sh_size,
                                     .name = name};
}

static void read_symbols(struct symbols_of_file *all, Elf *elf)
{
    GElf_Ehdr file;
    if (!gelf_getehdr(elf, &file))
        return;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_SYMTAB || !header.sh_entsize)
            continue;
        Elf_Data *data = elf_getdata(scn, NULL);
        GElf_Sym s;
        for (int i = 1; data && gelf_getsym(data, i, &s); i++)
            add_symbol(all, elf, &s, elf_strptr(elf, header.sh_link, s.st_name), file.e_type == ET_REL);
    }
}

static int by_address(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* `end`: where the next symbol begins; 0: there is none. */
static void add_function(struct function_index *x, const struct symbol *s, uint64_t end)
{
    const bool is_last = !end || end >= s->section_end;
    end = is_last ? s->section_end : end;
    bool added;
    size_t first = map_put(&x->by_name, s->name, strlen(s->name), x->all.len, &added);
    *vec_push(&x->all) = (struct function){.address = s->address,
                                           .bytes = s->bytes,
                                           .room = end > s->address ? end - s->address : 0,
                                           .same = NONE,
                                           .is_last = is_last};
    if (added)
        return;
    x->all.at[x->all.len - 1].same = x->all.at[first].same;
    x->all.at[first].same = x->all.len - 1;
}

struct function_index *function_index_new(Elf *elf)
{
    struct function_index *x = mem_alloc(sizeof(*x));
    struct symbols_of_file all = {0};
    read_symbols(&all, elf);
    if (all.len)
        qsort(all.at, all.len, sizeof(*all.at), by_address);
    uint64_t end = 0;
    for (size_t i = all.len; i-- > 0;) {
        add_function(x, &all.at[i], end);
        if (!i || all.at[i - 1].address != all.at[i].address)
            end = all.at[i].address;
    }
    vec_release(&all);
    return x;
}

void function_index_free(struct function_index *x)
{
    if (!x)
        return;
    vec_release(&x->all);
    map_release(&x->by_name);
    free(x);
}

/* How well a size fits: 2 it is the size, 1 it may be, 0 it is not. */
static int fits(const struct function *f, uint64_t bytes)
{
    if (bytes == f->room || (bytes == f->bytes && bytes))
        return 2;
    if (f->is_last) /* what the kernel has behind it lies in another section */
        return bytes >= f->bytes;
    return bytes >= f->bytes && f->bytes && bytes < f->bytes + PADDING_MOST &&
           bytes <= f->room + PADDING_MOST;
}

/* Every one counts whose code has the offset. Those whose size fits best are meant. */
enum function_found function_index_find(const struct function_index *x, const char *name, uint64_t offset,
                                        uint64_t bytes, uint64_t *address)
{
    unsigned found[3] = {0};
    uint64_t where[3] = {0};
    for (size_t i = map_get(&x->by_name, name, strlen(name)); i != NONE; i = x->all.at[i].same) {
        const struct function *f = &x->all.at[i];
        const uint64_t end = f->room > f->bytes ? f->room : f->bytes;
        const int how = bytes ? fits(f, bytes) : 2;
        if (offset >= (bytes > end ? bytes : end))
            continue;
        found[how]++;
        where[how] = f->address + offset;
    }
    const int best = found[2] ? 2 : 1;
    *address = where[best];
    return !found[best] ? FUNCTION_NONE : found[best] == 1 ? FUNCTION_ONE : FUNCTION_SEVERAL;
}

unsigned function_index_count(const struct function_index *x, const char *name)
{
    unsigned n = 0;
    for (size_t i = map_get(&x->by_name, name, strlen(name)); i != NONE; i = x->all.at[i].same)
        n++;
    return n;
}
