/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_IMPORT_SOURCE_H
#define SYS_IMPORT_SOURCE_H

/*
 * The source of calls in an imported trace: by their addresses, else by the names of their functions.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "symbol/function_index.h"
#include "symbol/symbol.h"

struct kallsyms;
struct kernel_source;

/** A call, as the trace has it. */
struct import_call {
    const char *text; /* "alloc_pipe_info+0x4a [ext4]" */
    uint64_t bytes;   /* size of the function, as the kernel takes it; 0: not known */
    uint64_t address; /* to which the call returns; 0: only its name is known */
};

/** Fills `out` as kernel_source_place_frames() does. `symbols`: NULL if there are none. */
enum function_found import_source_frames(struct kernel_source *source, const struct kallsyms *symbols,
                                         const struct import_call *call, struct symbol_frames *out);
/** Returns whether several functions have the name in the text. */
bool import_source_is_several(struct kernel_source *source, const char *text);

#endif
