/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/plt.h"

#include <stdbool.h>
#include <string.h>

#include <gelf.h>

static void read_relocations(Elf *elf, Elf_Scn *scn, const GElf_Shdr *header, struct symbol_slots *slots)
{
    Elf_Scn *symbols = elf_getscn(elf, header->sh_link);
    GElf_Shdr symbols_header;
    if (!symbols || !gelf_getshdr(symbols, &symbols_header) || symbols_header.sh_type != SHT_DYNSYM)
        return;
    Elf_Data *data = elf_getdata(scn, NULL), *symbol_data = elf_getdata(symbols, NULL);
    if (!data || !symbol_data)
        return;
    GElf_Rela rela;
    for (int i = 0; gelf_getrela(data, i, &rela); i++) {
        uint32_t type = (uint32_t)GELF_R_TYPE(rela.r_info);
        GElf_Sym symbol;
        if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
            !gelf_getsym(symbol_data, (int)GELF_R_SYM(rela.r_info), &symbol))
            continue;
        const char *name = elf_strptr(elf, symbols_header.sh_link, symbol.st_name);
        if (name && name[0])
            *vec_push(slots) = (struct symbol_slot){rela.r_offset, name};
    }
}

static int compare_slots(const void *a, const void *b)
{
    const struct symbol_slot *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

const char *symbol_slot_name(const struct symbol_slots *slots, uint64_t address)
{
    if (!slots->len)
        return NULL;
    struct symbol_slot key = {address, NULL};
    const struct symbol_slot *found = bsearch(&key, slots->at, slots->len, sizeof(key), compare_slots);
    return found ? found->symbol : NULL;
}

/** The stub's name is that of the word it jumps through: jmp *disp32(%rip), ff 25. */
static void read_stubs(Elf_Scn *scn, const GElf_Shdr *header, size_t stub_bytes,
                       const struct symbol_slots *slots, struct symbol_stubs *out)
{
    Elf_Data *data = elf_getdata(scn, NULL);
    if (!data || !data->d_buf)
        return;
    const unsigned char *code = data->d_buf;
    for (size_t at = 0; at + stub_bytes <= data->d_size; at += stub_bytes) {
        for (size_t i = at; i + 6 <= at + stub_bytes; i++) {
            if (code[i] != 0xff || code[i + 1] != 0x25)
                continue;
            int32_t distance;
            memcpy(&distance, code + i + 2, sizeof(distance));
            uint64_t slot = header->sh_addr + i + 6 + (uint64_t)(int64_t)distance;
            const char *symbol = symbol_slot_name(slots, slot);
            if (symbol)
                *vec_push(out) =
                    (struct symbol_stub){header->sh_addr + at, header->sh_addr + at + stub_bytes, symbol};
            break;
        }
    }
}

/** Bytes of each stub in a section of this name; 0 when it holds none. */
static size_t stub_size(const char *name, const GElf_Shdr *header)
{
    bool got = !strcmp(name, ".plt.got");
    if (!got && strcmp(name, ".plt") != 0 && strcmp(name, ".plt.sec") != 0)
        return 0;
    size_t usual = got ? 8 : 16;
    return header->sh_entsize == 8 || header->sh_entsize == 16 ? (size_t)header->sh_entsize : usual;
}

void symbol_plt_read_slots(Elf *elf, struct symbol_slots *out)
{
    GElf_Shdr header;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));)
        if (gelf_getshdr(scn, &header) && header.sh_type == SHT_RELA && (header.sh_flags & SHF_ALLOC))
            read_relocations(elf, scn, &header, out);
    if (out->len)
        qsort(out->at, out->len, sizeof(*out->at), compare_slots);
}

void symbol_plt_read(Elf *elf, struct symbol_stubs *out)
{
    GElf_Ehdr file;
    size_t names;
    if (!gelf_getehdr(elf, &file) || file.e_machine != EM_X86_64 || elf_getshdrstrndx(elf, &names) != 0)
        return;
    struct symbol_slots slots = {0};
    GElf_Shdr header;
    symbol_plt_read_slots(elf, &slots);
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_PROGBITS ||
            !(header.sh_flags & SHF_EXECINSTR))
            continue;
        const char *name = elf_strptr(elf, names, header.sh_name);
        size_t bytes = name ? stub_size(name, &header) : 0;
        if (bytes)
            read_stubs(scn, &header, bytes, &slots, out);
    }
    vec_release(&slots);
}
