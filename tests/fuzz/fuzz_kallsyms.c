/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/symbol/kallsyms: whatever the kernel's files say, the table is in order, and an address finds the
 * last symbol that begins at or before it, or nothing. Three texts with a NUL between: kallsyms, modules, and a later
 * kallsyms.
 */
#include "require.h"

#include "symbol/kallsyms.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *take_text(const uint8_t **data, size_t *size)
{
    char *text = mem_strndup((const char *)*data, *size);
    size_t len = strlen(text) < *size ? strlen(text) + 1 : *size;
    *data += len;
    *size -= len;
    return text;
}

/* By a look at each. */
static size_t find_slowly(const struct kallsyms *k, uint64_t address)
{
    size_t found = KALLSYMS_NONE;
    for (size_t i = 0; i < k->all.len; i++)
        if (k->all.at[i].address <= address)
            found = i;
    return found;
}

static void check_address(const struct kallsyms *k, uint64_t address)
{
    size_t at = kallsyms_find(k, address);
    require(at == KALLSYMS_NONE || at == find_slowly(k, address), "another symbol holds %lx",
            (unsigned long)address);
    if (at == KALLSYMS_NONE)
        return;
    size_t len = strlen(kallsyms_name(k, at));
    require(len && len <= KALLSYMS_NAME_MAX && !strpbrk(kallsyms_name(k, at), " \t\r\n\033"),
            "a name that is none");
    require(!strpbrk(kallsyms_module_name(k, at), " \t\r\n\033]"), "a module's name that is none");
    require(kallsyms_passes(k, at) == (kallsyms_module_name(k, at)[0] != '\0'), "the kernel itself passes");
}

static void check_table(const struct kallsyms *k)
{
    require(k->bad_lines <= k->lines && k->all.len <= k->lines + 65536, "more than there is");
    for (size_t i = 0; i < k->all.len && i < 200; i++) {
        uint64_t address = k->all.at[i].address;
        require(!i || k->all.at[i - 1].address < address, "not in order");
        require(address >> 63, "an address of user space");
        require(!k->all.at[i].name || !k->modules.at[k->all.at[i].module].made ||
                    kallsyms_find(k, address) == i,
                "a symbol does not hold where it begins");
        check_address(k, address);
        check_address(k, address - 1);
        check_address(k, address + (4u << 20));
    }
    check_address(k, 0);
    check_address(k, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kallsyms before, now;
    char *symbols = take_text(&data, &size), *modules = take_text(&data, &size),
         *later = take_text(&data, &size);
    kallsyms_parse(&before, symbols, modules);
    check_table(&before);
    kallsyms_parse(&now, later, modules);
    size_t own = now.all.len;
    kallsyms_inherit(&now, &before);
    require(now.all.len >= own, "something was lost");
    check_table(&now);
    kallsyms_release(&before);
    kallsyms_release(&now);
    free(symbols);
    free(modules);
    free(later);
    return 0;
}
