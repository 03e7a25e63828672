/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_MODULE_H
#define UNWIND_MODULE_H

/*
 * A table of the modules (executable, libraries, vdso) in which module_find() has found an address, mostly for stack
 * walks. If a library is unloaded and another one is loaded at its address, each of the two has a record of its own.
 *
 * Runs in: target. Threads: any, signal handlers included. Records are appended and never removed. Three fields of a
 * complete record may change: link_map and name, when the same library is loaded again, and ledger_id. Needs
 * _dl_find_object() (glibc 2.35), which takes no lock. With an older glibc, dl_iterate_phdr() lists the modules once,
 * when the agent starts; libraries that are loaded later are unknown.
 * Invariant: of a module's memory, reads only the PT_LOAD segments that the loader reports as mapped.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

#define MODULE_MAX  2048u
#define MODULE_NONE UINT32_MAX

struct unwind_module {
    uintptr_t start, end; /* the first page of the PT_LOAD segments; the byte after the last */
    uintptr_t bias;
    uintptr_t entry;                  /* entry point of executable or loader; 0: another module, or unknown */
    const uint8_t *eh_frame_hdr;      /* NULL: the module has none, so no rules are found */
    uintptr_t rules_start, rules_end; /* PT_LOAD segment of .eh_frame_hdr; .eh_frame is read only there */
    const void *link_map;
    const char *name;        /* l_name of the link map; "" for the executable, or unknown */
    const uint8_t *build_id; /* in the module's memory; NULL: none */
    uint32_t build_id_len;
    uint64_t identity;      /* a hash; another module at the same address has another hash */
    uint64_t build_id_word; /* the first 8 bytes of the build id; 0: none, or a shorter build id */
    bool permanent;         /* the executable or a module that module_init() recorded: never unloaded */
    uint32_t ready;         /* 1: the fields above are set; set after them */
    uint32_t ledger_id;     /* the index of the module's record in the ledger + 1; 0: none yet */
};

struct module_table {
    uint32_t used;
    struct unwind_module at[MODULE_MAX];
};

extern struct module_table unwind_modules;

/**
 * Returns the index in unwind_modules of the module that covers pc now; adds a record if the module has none.
 * MODULE_NONE: pc is outside of all modules, or the ELF headers were not found, or the table is full.
 */
ONE_COPY uint32_t module_find(uintptr_t pc);
/** The slow path of module_is_current(): looks pc up in the loader's list. */
ONE_COPY bool module_is_current_cold(const struct unwind_module *m, uintptr_t pc);
/** Returns whether the module unwind_modules.at[index] is still loaded at pc. */
static inline bool module_is_current(uint32_t index, uintptr_t pc)
{
    const struct unwind_module *m = &unwind_modules.at[index];
    return m->permanent || module_is_current_cold(m, pc);
}
/**
 * Records the link maps of the modules that were loaded with the program; none, if this library itself may have been
 * loaded with dlopen(). Called once, when the agent or tag library starts, before the first walk.
 */
void module_init(void);
/** Returns the link map of the module that covers pc now. NULL: there is none, or glibc is too old to tell. */
const void *module_link_map(uintptr_t pc);
/** Returns whether module_init() recorded the module with this link map. */
bool module_came_with_program(const void *link_map);
/** Lists the modules if glibc is older than 2.35. Called once, at a point where dl_iterate_phdr() may be called. */
void module_init_late(void);

#endif
