/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_RAW_STATES_H
#define SYS_RAW_STATES_H

/*
 * What the kernel told of its memory while `allium sys record --raw` ran, in its folder: a folder for each moment, with
 * the texts under their paths (state/1764273600000000000/proc/slabinfo).
 *
 * Runs in: the tool. Threads: one. Owns: the texts, until raw_states_release().
 */

#include <stdint.h>

#include "collect/kernel/kernel_state.h"
#include "sys/record/raw_folder.h"

struct raw_state {
    uint64_t taken_ns; /* CLOCK_REALTIME */
    struct kernel_state state;
};

struct raw_states {
    struct VEC(struct raw_state) moments; /* in the order of their times */
};

/** Writes the texts of a moment; a failure is the folder's. */
void raw_states_put(struct raw_folder *f, const struct kernel_state *s, uint64_t taken_ns);
/** Reads all texts that there are below the folder `path`; there may be none. */
void raw_states_load(struct raw_states *s, const char *path);
void raw_states_release(struct raw_states *s);

#endif
