/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/dienames.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#define LINKS_MAX  16
#define SCOPES_MAX 64

void symbol_die_names_release(struct symbol_die_names *d)
{
    map_release(&d->scoped);
    vec_release(&d->kept);
}

bool symbol_die_first(struct symbol_die_names *d, Dwarf_Die *parent, Dwarf_Die *child)
{
    if (!d->budget || dwarf_child(parent, child) != 0 || dwarf_dieoffset(child) <= dwarf_dieoffset(parent))
        return false;
    d->budget--;
    return true;
}

bool symbol_die_next(struct symbol_die_names *d, Dwarf_Die *die)
{
    Dwarf_Die next;
    if (!d->budget || dwarf_siblingof(die, &next) != 0 || dwarf_dieoffset(&next) <= dwarf_dieoffset(die))
        return false;
    d->budget--;
    *die = next;
    return true;
}

bool symbol_die_has_scopes(Dwarf_Die *unit)
{
    switch (dwarf_srclang(unit)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2b: /* C++17 */
    case 0x2c: /* C++20 */
        return true;
    default:
        return false;
    }
}

/** From an instance to its abstract function and on to the declaration, which stands in its class. */
static void find_declaration(Dwarf_Die *die)
{
    static const unsigned links[] = {DW_AT_abstract_origin, DW_AT_specification};
    for (int i = 0; i < LINKS_MAX; i++) {
        Dwarf_Attribute attribute;
        Dwarf_Die target;
        bool linked = false;
        for (size_t k = 0; k < 2 && !linked; k++)
            linked = dwarf_attr(die, links[k], &attribute) && dwarf_formref_die(&attribute, &target);
        if (!linked)
            return;
        *die = target;
    }
}

static bool is_scope(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_subprogram;
}

static void add_scope(struct buf *text, Dwarf_Die *scope, const char *inside)
{
    const char *name = dwarf_diename(scope);
    if (!name && dwarf_tag(scope) == DW_TAG_namespace)
        name = "(anonymous namespace)";
    if (!name)
        name = !strncmp(inside, "operator()", 10) ? "{lambda}" : "{unnamed}";
    buf_printf(text, "%s::", name);
}

/**
 * Adds the scopes around a DIE. Offsets ascend in the order of the tree, so that on each level the way goes down into
 * the last DIE that begins before it: dwarf_getscopes_die() would walk all of the unit.
 */
static void add_scopes(struct symbol_die_names *d, Dwarf_Die *die, struct buf *text, const char *plain)
{
    Dwarf_Die at, next, unit;
    Dwarf_Off target = dwarf_dieoffset(die);
    if (!dwarf_diecu(die, &unit, NULL, NULL))
        return;
    for (int depth = 0; depth < SCOPES_MAX && symbol_die_first(d, &unit, &at); depth++) {
        for (next = at; symbol_die_next(d, &next) && dwarf_dieoffset(&next) <= target;)
            at = next;
        if (dwarf_dieoffset(&at) >= target)
            return;
        if (is_scope(dwarf_tag(&at)))
            add_scope(text, &at, plain);
        unit = at;
    }
}

static const char *qualify(struct symbol_die_names *d, const Dwarf_Die *die, const char *plain)
{
    Dwarf_Die declaration = *die;
    find_declaration(&declaration);
    bool added;
    size_t at = map_put(&d->scoped, &declaration.addr, sizeof(declaration.addr), d->kept.len, &added);
    if (!added)
        return d->kept.at[at];
    struct buf text = BUF_INIT;
    add_scopes(d, &declaration, &text, plain);
    buf_addstr(&text, plain);
    *vec_push(&d->kept) = symbol_names_store(d->names, buf_str(&text));
    buf_release(&text);
    return d->kept.at[at];
}

const char *symbol_die_name(struct symbol_die_names *d, Dwarf_Die *die, bool scopes, uint64_t entry)
{
    Dwarf_Attribute attribute;
    const char *linkage = NULL;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        linkage = dwarf_formstring(&attribute);
    const char *raw = linkage ? linkage : dwarf_diename(die);
    const char *plain = symbol_names_function(d->names, raw);
    const char *name = entry ? symbol_table_alias(d->table, entry, raw) : plain;
    return linkage || !scopes || !name || name != plain ? name : qualify(d, die, plain);
}
