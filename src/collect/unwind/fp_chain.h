/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_FP_CHAIN_H
#define COLLECT_FP_CHAIN_H

/*
 * Decides how much of a chain of frame pointers is right. The kernel follows rbp wherever it points. Code
 * that was built without frame pointers uses rbp for something else, or leaves the value of a caller in it;
 * then the rest of the chain is not short but wrong. A step from a frame to its caller is right only if the
 * unwind rule in force at that address says the same.
 */

#include <stddef.h>
#include <stdint.h>

#include "collect/unwind/dso.h"

struct fp_chain_frame {
    struct dso *file; /* NULL: not known */
    uint64_t address; /* address in the ELF file: exact for the leaf, else one less than the return address */
};

enum fp_chain_end {
    FP_CHAIN_WHOLE,    /* every frame is right */
    FP_CHAIN_NO_FILE,  /* the callers of the next frame are not: its code is in no file that could be read */
    FP_CHAIN_NO_RULES, /* ... its code has no unwind rules */
    FP_CHAIN_NO_FRAME_POINTER, /* ... its rbp is no frame pointer, or not yet */
};

/**
 * Returns how many of n frames, the leaf first, are right; at least one if there is any. `why` (may be NULL):
 * why not more.
 */
size_t fp_chain_trusted(const struct fp_chain_frame *frames, size_t n, enum fp_chain_end *why);

#endif
