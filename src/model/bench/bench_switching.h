/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_BENCH_SWITCHING_H
#define MODEL_BENCH_SWITCHING_H

/*
 * What it costs to switch a mechanism on and off, at one place of a program and at many.
 *
 * Runs in: the tool. Threads: pure. Owns: its figures, until bench_switchings_release(); names are borrowed.
 */

#include <stdint.h>

#include "base/vec.h"

#define BENCH_SWITCHING_FEW  1u
#define BENCH_SWITCHING_MANY 1000u

/** Medians of some times, in ns, of all sites together; NAN: not measured. */
struct bench_switching_figures {
    double on_ns, off_ns;
};

struct bench_switching {
    const char *name; /* of the mechanism, or of a sink with a switch of its own */
    struct bench_switching_figures few, many;
    char *unavailable; /* why it could not be measured, and the way out; NULL: it could */
};
struct bench_switchings VEC(struct bench_switching);

/** Returns the medians of `n` times; of none: NAN. */
struct bench_switching_figures bench_switching_median(const uint32_t *on_ns, const uint32_t *off_ns,
                                                      uint32_t n);
void bench_switchings_release(struct bench_switchings *s);

#endif
