/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_PPROF_H
#define VIEW_PPROF_H

/*
 * A profile in the format of pprof: perftools.profiles.Profile in protocol buffers, gzipped.
 * https://github.com/google/pprof/blob/main/proto/profile.proto
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 *
 * Values are estimates of all objects, not counts of samples; the format has no place for intervals. A sample
 * is a stack, a power of two of the size (label "bytes": its lower end), and a process if there are several
 * (label "process"). Addresses are those in the process where the code was first seen.
 */

#include "model/profile/profile.h"
#include "view/text/sink.h"

struct pprof_options {
    /* Which cells count; NULL: all. */
    bool (*keep)(void *arg, const struct profile *p, uint32_t cell);
    void *arg;
};

/** The profile must be valid. */
void pprof_write(struct sink *out, const struct profile *p, const struct pprof_options *o);

#endif
