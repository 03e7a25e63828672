/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_MODULE_H
#define UNWIND_MODULE_H

/*
 * The modules (executable, libraries, vdso) the unwinder has met, each *generation* a record of its own: a library
 * unloaded and another loaded at its place are two records with two sets of rules.
 *
 * Runs in: target. Threads: any, signal handlers included; records are appended, never changed.
 * Needs: _dl_find_object (glibc 2.35), which takes no lock; on an older glibc a list taken by dl_iterate_phdr when the
 * agent starts, which does not know later libraries.
 * Invariant: reads only memory the loader says belongs to a module, within that module's own PT_LOAD segments.
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
    uintptr_t rules_start, rules_end; /* the segment that holds them */
    const void *link_map;
    const char *name;        /* the loader's; "" for the executable */
    const uint8_t *build_id; /* in the module's memory, or NULL */
    uint32_t build_id_len;
    uint64_t identity;      /* of the content: compared to tell generations apart */
    uint64_t build_id_word; /* the first bytes of the build id, for a quick look */
    bool permanent;         /* the executable, and what came with it: never unloaded */
    uint32_t ready;         /* set last */
    uint32_t ledger_id;     /* owned by the agent: record in the ledger + 1, 0: none yet */
};

struct module_table {
    uint32_t used;
    struct unwind_module at[MODULE_MAX];
};

extern struct module_table unwind_modules;

/** The record of the module that covers pc now, added if it is new; MODULE_NONE for code outside every module. */
ONE_COPY uint32_t module_find(uintptr_t pc);
/** Looks at the loader's books for module_is_current(). */
ONE_COPY bool module_is_current_cold(const struct unwind_module *m, uintptr_t pc);
/** Does the record still describe what is loaded at pc? */
static inline bool module_is_current(uint32_t index, uintptr_t pc)
{
    const struct unwind_module *m = &unwind_modules.at[index];
    return m->permanent || module_is_current_cold(m, pc);
}
/** Notes the modules that came with the program, before it can load others; once, before the first walk. */
void module_init(void);
/** The loader's link map of the module that covers pc now; NULL: none. */
const void *module_link_map(uintptr_t pc);
/** Was it there when module_init() looked? */
bool module_came_with_program(const void *link_map);
/** For older glibc: must be called once, where dl_iterate_phdr may be called. */
void module_init_late(void);

#endif
