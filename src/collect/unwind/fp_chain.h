/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_FP_CHAIN_H
#define COLLECT_FP_CHAIN_H

/*
 * How far a chain of frame pointers can be trusted. The kernel follows rbp wherever it points; code that was built
 * without frame pointers uses it for something else, or leaves that of a caller in it: what follows is not short, it is
 * wrong. A step from a frame to its caller is right only where the unwind rule in force at that place says the same.
 *
 * Runs in: the tool. Threads: one.
 */

#include <stddef.h>
#include <stdint.h>

#include "collect/unwind/dso.h"

struct fp_chain_frame {
    struct dso *file; /* NULL: not known */
    uint64_t address; /* the ELF's own: exact for the leaf, else one less than the return address */
};

enum fp_chain_end {
    FP_CHAIN_WHOLE,    /* every frame can be trusted */
    FP_CHAIN_NO_FILE,  /* the next one's callers not: its code is in no file that could be looked at */
    FP_CHAIN_NO_RULES, /* nor where it has no unwind rules */
    FP_CHAIN_NO_FRAME_POINTER, /* nor where its rbp is no frame pointer, or not yet */
};

/**
 * How many of n frames, the leaf first, are right; at least one of those there are. `why` (may be NULL): why not more.
 */
size_t fp_chain_trusted(const struct fp_chain_frame *frames, size_t n, enum fp_chain_end *why);

#endif
