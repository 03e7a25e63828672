/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/relocatable.h"

#include <stdbool.h>
#include <stdlib.h>

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "base/mem.h"

#define FIRST_ADDRESS 0x10000u
#define ALIGN_LEAST   16u
#define ALIGN_MOST    (1u << 21)
#define ADDRESS_MOST  (UINT64_C(1) << 40)

struct relocated {
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwarf *dwarf;
};

/* ---- addresses ---- */

static bool is_in_memory(const GElf_Shdr *header, bool code)
{
    return (header->sh_flags & SHF_ALLOC) && ((header->sh_flags & SHF_EXECINSTR) != 0) == code;
}

static uint64_t place_sections(Elf *elf, bool code, uint64_t next)
{
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        if (!gelf_getshdr(scn, &header) || !is_in_memory(&header, code))
            continue;
        uint64_t align = header.sh_addralign > ALIGN_LEAST ? header.sh_addralign : ALIGN_LEAST;
        align = align < ALIGN_MOST ? align : ALIGN_MOST;
        next = (next + align - 1) / align * align;
        header.sh_addr = next;
        gelf_update_shdr(scn, &header);
        next += header.sh_size < ADDRESS_MOST - next ? header.sh_size : 0;
    }
    return next;
}

void relocatable_lay_out(Elf *elf)
{
    place_sections(elf, false, place_sections(elf, true, FIRST_ADDRESS));
}

/* ---- debug information ---- */

/* The handle stays ours: libdwfl ends the one that it is given. */
static int give_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **file_name,
                    Elf **elf)
{
    (void)module;
    (void)name;
    (void)base;
    (void)file_name;
    *elf = elf_begin(-1, ELF_C_READ, *data);
    return -1;
}

/* No other file is opened. */
static int give_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                             const char *file, const char *link, GElf_Word crc, char **debug_name)
{
    (void)module;
    (void)data;
    (void)name;
    (void)base;
    (void)file;
    (void)link;
    (void)crc;
    (void)debug_name;
    return -1;
}

/* Asked only for sections at address 0, which are not in memory. */
static int give_no_address(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                           const char *section, GElf_Word index, const GElf_Shdr *header, Dwarf_Addr *out)
{
    (void)module;
    (void)data;
    (void)name;
    (void)base;
    (void)section;
    (void)index;
    (void)header;
    *out = (Dwarf_Addr)-1;
    return 0;
}

struct relocated *relocated_new(Elf *elf)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = give_elf, .find_debuginfo = give_no_debuginfo, .section_address = give_no_address};
    struct relocated *r = mem_alloc(sizeof(*r));
    Dwarf_Addr bias = 0;
    void **data = NULL;
    r->dwfl = dwfl_begin(&callbacks);
    if (r->dwfl) {
        dwfl_report_begin(r->dwfl);
        r->module = dwfl_report_module(r->dwfl, "module", FIRST_ADDRESS, ADDRESS_MOST);
        if (r->module &&
            !dwfl_module_info(r->module, &data, NULL, NULL, NULL, NULL, NULL, NULL)) /* gives the name */
            data = NULL;
        if (data)
            *data = elf;
        dwfl_report_end(r->dwfl, NULL, NULL);
        r->dwarf = data ? dwfl_module_getdwarf(r->module, &bias) : NULL;
    }
    if (!r->dwarf || bias) {
        relocated_free(r);
        return NULL;
    }
    return r;
}

Dwarf *relocated_dwarf(const struct relocated *r)
{
    return r->dwarf;
}

void relocated_free(struct relocated *r)
{
    if (!r)
        return;
    dwfl_end(r->dwfl);
    free(r);
}
