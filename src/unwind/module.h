/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_MODULE_H
#define UNWIND_MODULE_H

/*
 * The modules (executable, libraries, vdso) that the unwinder has met. If a library is unloaded and another one is
 * loaded at its place, each has its own record and its own rules.
 *
 * Runs in: target. Threads: any, signal handlers included. Records are appended and never removed; of a complete record
 * only link_map and name change, when the same library is opened again. Needs: _dl_find_object() (glibc 2.35), which
 * takes no lock. With an older glibc: a list that dl_iterate_phdr() gave when the agent started, without the libraries
 * that were loaded later.
 * Invariant: reads only memory that belongs to a module according to the loader, within the PT_LOAD segments of the
 * module.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

#define MODULE_MAX  2048u
#define MODULE_NONE UINT32_MAX

struct unwind_module {
    uintptr_t start, end; /* as mapped */
    uintptr_t bias;
    uintptr_t entry; /* of the loader and the executable: where the process begins in it; else 0 */
    const uint8_t *eh_frame_hdr;      /* NULL: no rules */
    uintptr_t rules_start, rules_end; /* the segment that holds the rules */
    const void *link_map;
    const char *name;        /* the loader's; "" for the executable */
    const uint8_t *build_id; /* in the module's memory, or NULL */
    uint32_t build_id_len;
    uint64_t identity;      /* a hash that tells two modules at one place apart */
    uint64_t build_id_word; /* the first bytes of the build id, for a quick comparison */
    bool permanent;         /* the executable or a module that was loaded with it: never unloaded */
    uint32_t ready;         /* set last */
    uint32_t ledger_id;     /* owned by the agent: its record in the ledger + 1; 0: none yet */
};

struct module_table {
    uint32_t used;
    struct unwind_module at[MODULE_MAX];
};

extern struct module_table unwind_modules;

/** The record of the module that covers pc now; it is added if it is new. MODULE_NONE: pc is outside of all modules. */
ONE_COPY uint32_t module_find(uintptr_t pc);
/** Asks the loader, for module_is_current(). */
ONE_COPY bool module_is_current_cold(const struct unwind_module *m, uintptr_t pc);
/** Returns whether the module of this record is still loaded at pc. */
static inline bool module_is_current(uint32_t index, uintptr_t pc)
{
    const struct unwind_module *m = &unwind_modules.at[index];
    return m->permanent || module_is_current_cold(m, pc);
}
/**
 * Notes the modules that were loaded with the program. Called once, before the first walk and before others are loaded.
 */
void module_init(void);
/** The loader's link map of the module that covers pc now. NULL: there is none. */
const void *module_link_map(uintptr_t pc);
/** Returns whether module_init() noted the module. */
bool module_came_with_program(const void *link_map);
/** For an older glibc: called once, at a point where dl_iterate_phdr() may be called. */
void module_init_late(void);

#endif
