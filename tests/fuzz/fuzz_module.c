/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/symbol/relocatable and function_index: whatever an ELF file says, its sections get addresses that
 * can be added to, one behind the other, and a function that is found is one of the file's.
 */
#include "require.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>

#include "base/mem.h"
#include "symbol/function_index.h"
#include "symbol/relocatable.h"

#define ADDRESSES_END (UINT64_C(1) << 41)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sections(Elf *elf)
{
    uint64_t last = 0;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        if (!gelf_getshdr(scn, &header) || !(header.sh_flags & SHF_ALLOC))
            continue;
        require(header.sh_addr && header.sh_addr < ADDRESSES_END, "an address out of all bounds");
        if (!(header.sh_flags & SHF_EXECINSTR))
            continue;
        require(header.sh_addr >= last, "code that is not in order");
        last = header.sh_addr;
    }
}

static void look_up(const struct function_index *x, const char *name)
{
    static const uint64_t offsets[] = {0, 1, 15, 64, 4096, UINT64_MAX}, sizes[] = {0, 1, 16, 64, UINT64_MAX};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
        for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
            uint64_t address = 0;
            enum function_found found = function_index_find(x, name, offsets[i], sizes[k], &address);
            require(found == FUNCTION_NONE || offsets[i] != UINT64_MAX, "behind the end of everything");
            require(found == FUNCTION_NONE || function_index_count(x, name), "found, but not there");
            require(found != FUNCTION_SEVERAL || function_index_count(x, name) > 1, "several of one");
            require(found != FUNCTION_ONE || sizes[k] || function_index_count(x, name) > 1 ||
                        function_index_find(x, name, 0, 0, &address) == FUNCTION_ONE,
                    "an offset that is in no function");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"own_alloc", "test_get", "other_get", "", "$x"};
    char *copy = mem_alloc(size + 1);
    memcpy(copy, data, size);
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory(copy, size);
    GElf_Ehdr header;
    if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) && header.e_type == ET_REL) {
        relocatable_lay_out(elf);
        check_sections(elf);
        struct function_index *x = function_index_new(elf);
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
            look_up(x, names[i]);
        function_index_free(x);
    }
    elf_end(elf);
    free(copy);
    return 0;
}
