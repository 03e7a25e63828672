/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_TRACER_UNTIMED_H
#define AGENT_TRACER_UNTIMED_H

/*
 * The tracer's hooks for `--clock none`, `every:N` and `counter`: as short as those of tracer.c, with sequences that do
 * not read the time stamp counter, or not for each event. Functions that programs call seldom keep the hooks of
 * tracer.c, whose slow path calls tracer_untimed_put().
 *
 * Runs in: target. Threads: any, signal handlers included; no lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ring/sequence_x86_64.h"

/** Installs the hooks if the clock is one of these. Called once, when those of tracer.c are installed. */
void tracer_untimed_begin(void);
/** Lets the hooks see new rings. Called when all of tracer_hot.rings but `area` is set. */
void tracer_untimed_publish(void);

/**
 * Puts an event with a site, of 4 or 5 words, by one sequence. True: the event is written, or tracing is off. False:
 * nothing was written; if the sequence ran, *before is its result.
 */
bool tracer_untimed_put(enum sequence_result *before, uint64_t what, uint64_t a, uint64_t b, uintptr_t site);
/** The same for an event without a site, of 3 or 4 words. */
bool tracer_untimed_put_bare(enum sequence_result *before, uint64_t what, uint64_t a, uint64_t b);

#endif
