/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_MODULE_H
#define UNWIND_MODULE_H

/*
 * A table of the modules (executable, libraries, vdso) in which walks have found frames. If a library is unloaded and
 * another one is loaded at its address, each has its own record and its own rules.
 *
 * Runs in: target. Threads: any, signal handlers included. Records are appended and never removed. A complete record
 * changes only when the same library is loaded again: link_map and name are replaced. Needs _dl_find_object() (glibc
 * 2.35), which takes no lock. With an older glibc, dl_iterate_phdr() lists the modules once, when the agent starts;
 * libraries that are loaded later are unknown.
 * Invariant: reads only memory that belongs to a module according to the loader, within the PT_LOAD segments of the
 * module.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

#define MODULE_MAX  2048u
#define MODULE_NONE UINT32_MAX

struct unwind_module {
    uintptr_t start, end; /* the mapped addresses */
    uintptr_t bias;
    uintptr_t entry;                  /* the entry point of the executable or the loader; 0: another module */
    const uint8_t *eh_frame_hdr;      /* NULL: the module has no unwind rules */
    uintptr_t rules_start, rules_end; /* the segment that holds .eh_frame_hdr and .eh_frame */
    const void *link_map;
    const char *name;        /* l_name of the link map; "" for the executable */
    const uint8_t *build_id; /* in the module's memory, or NULL */
    uint32_t build_id_len;
    uint64_t identity;      /* a hash that differs if another module is loaded at the same address */
    uint64_t build_id_word; /* the first bytes of the build id, for a quick comparison */
    bool permanent;         /* the executable or a module that was loaded with it: never unloaded */
    uint32_t ready;         /* set after all other fields */
    uint32_t ledger_id;     /* set by the agent: the module's record in the ledger + 1; 0: none yet */
};

struct module_table {
    uint32_t used;
    struct unwind_module at[MODULE_MAX];
};

extern struct module_table unwind_modules;

/**
 * Returns the record of the module that covers pc now; adds a new record if it has none. MODULE_NONE: pc is outside of
 * all modules, or the table is full.
 */
ONE_COPY uint32_t module_find(uintptr_t pc);
/** The slow path of module_is_current(): looks pc up in the loader's list. */
ONE_COPY bool module_is_current_cold(const struct unwind_module *m, uintptr_t pc);
/** Returns whether the module of this record is still loaded at pc. */
static inline bool module_is_current(uint32_t index, uintptr_t pc)
{
    const struct unwind_module *m = &unwind_modules.at[index];
    return m->permanent || module_is_current_cold(m, pc);
}
/**
 * Records the modules that were loaded with the program. Called once, before any dlopen() and before the first walk.
 */
void module_init(void);
/** Returns the link map of the module that covers pc now. NULL: there is none, or glibc is too old to tell. */
const void *module_link_map(uintptr_t pc);
/** Returns whether module_init() recorded the module with this link map. */
bool module_came_with_program(const void *link_map);
/** Lists the modules if glibc is older than 2.35. Called once, at a point where dl_iterate_phdr() may be called. */
void module_init_late(void);

#endif
