/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_UNTIMED_H
#define AGENT_TRACER_UNTIMED_H

/*
 * The tracer's hooks for `--clock none`, `every:N` and `counter`: as short as those of tracer.c, with sequences that do
 * not read the time stamp counter, or not for each event. The functions that a program calls seldom stay those of
 * tracer.c, which take their slow path, and come here from there.
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ring/sequence_x86_64.h"

/** Installs the hooks if the clock is one of these. Called once, when those of tracer.c are installed. */
void tracer_untimed_begin(void);
/** Lets them see new rings, which are in tracer_hot but for `area`. */
void tracer_untimed_publish(void);

/**
 * Puts an event of the class with a site, of 4 or 5 words, if one sequence can do so, or if tracing is off. If not,
 * *before becomes its result.
 */
bool tracer_untimed_put(enum sequence_result *before, uint64_t what, uint64_t a, uint64_t b, uintptr_t site);
/** The same of a class without a site, of 3 or 4 words. */
bool tracer_untimed_put_bare(enum sequence_result *before, uint64_t what, uint64_t a, uint64_t b);

#endif
