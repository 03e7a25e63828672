/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/deferred_match.h"

#include <link.h>
#include <stddef.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/clause.h"
#include "base/sigsafe/str.h"
#include "unwind/module.h"
#include "target/elf_symbols.h"
#include "wire/deferred_rules.h"

#define STATE_SHIFT 32

_Static_assert(LEDGER_QUERIES_MOST <= STATE_SHIFT, "a bit for each");

/* The place that the rules are being matched against. */
struct known {
    const struct deferred_target *place;
    const struct unwind_module *module; /* NULL: no module was found at place->code */
    bool looked_up;                     /* function[] is valid; "": no name was found */
    char path[ELF_SYMBOLS_PATH_BYTES], function[ELF_SYMBOLS_NAME_BYTES];
};

static bool is_resolved(const struct ledger_deferred *k, uint64_t module)
{
    uint64_t low = 0, high = k->n_resolved <= LEDGER_RESOLVED_MOST ? k->n_resolved : 0;
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (k->resolved[mid] == module)
            return true;
        if (k->resolved[mid] < module)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

/* Returns the function's name in the symbol table. A mangled C++ name is returned as unknown, because rules contain
 * demangled names and this code cannot demangle. */
static struct clause_value function_of(struct known *k)
{
    if (!k->looked_up && k->module)
        elf_symbols_name(k->path, (const void *)k->module->start, (uintptr_t)k->place->code - k->module->bias,
                         k->function);
    k->looked_up = true;
    bool known = *k->function && !text_starts(k->function, "_Z");
    return (struct clause_value){known ? k->function : NULL, known};
}

static struct clause_value value_of(void *subject, enum clause_field field)
{
    struct known *k = subject;
    const char *text = k->place->text;
    if (field == CLAUSE_MODULE)
        return (struct clause_value){*k->path ? k->path : NULL, *k->path != '\0'};
    if (field == CLAUSE_FUNC)
        return function_of(k);
    if (text && field == CLAUSE_NAME)
        text += text_length(text) + 1;
    else if (field == CLAUSE_FILE)
        text = k->place->file;
    /*
     * The value of CLAUSE_FILE is never sure: the compiler may have been given only a part of the path, and code that
     * uses malloc_hooks.h stores no file, because the debug information has the file.
     */
    return (struct clause_value){text && *text ? text : NULL, field != CLAUSE_FILE};
}

static void begin(struct known *k, const struct deferred_target *place)
{
    *k->path = *k->function = '\0';
    k->place = place;
    k->looked_up = false;
    const struct link_map *map = module_link_map((uintptr_t)place->code);
    uint32_t module = map ? module_find((uintptr_t)place->code) : MODULE_NONE;
    k->module = module == MODULE_NONE ? NULL : &unwind_modules.at[module];
    if (k->module)
        elf_symbols_path(map->l_name, k->path); /* the name of the module that is loaded now */
}

uint32_t deferred_fits(const struct ledger_deferred *k, uint32_t queries, uint32_t state,
                       struct deferred_target *place)
{
    uint64_t before = load_relaxed(&place->fits);
    uint32_t fits = 0;
    struct known known;
    if (before >> STATE_SHIFT == state)
        return (uint32_t)before;
    if (!is_resolved(k, place->module)) {
        begin(&known, place);
        for (uint32_t i = 0; i < queries; i++) {
            const struct ledger_query *q = &k->queries[i];
            if (q->clause_bytes <= sizeof(q->clause) &&
                clause_judge(q->clause, q->clause_bytes, value_of, &known) == CLAUSE_YES)
                fits |= 1u << i;
        }
    }
    store_relaxed(&place->fits, (uint64_t)state << STATE_SHIFT | fits);
    return fits;
}
