/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_HOOK_H
#define BENCH_HOOK_H

/*
 * Ways to be called by a program (mechanisms), and what to do then (sinks), in their smallest form. bench_hook() is
 * between the two: every mechanism calls it, and it is one jump, patched when the helper starts, to the sink's
 * function.
 *
 * Runs in: the helper of `allium bench`. Threads: hits in any, all else in the first.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bench/hooks/bench_turn.h"

/** Calls the sink; `function` is the function that was entered, `caller` its return address. */
void bench_hook(void *function, void *caller);

struct bench_sink {
    const char *name;
    void (*hit)(void *function, void *caller);
    /** Prepares the sink. Returns NULL, or why it cannot be used; NULL: nothing to prepare. */
    const char *(*begin)(unsigned threads);
    /** Called by each thread at the end of a batch, outside of the time; NULL: nothing to do. */
    void (*leave)(void);
    /**
     * Waits, for a limited time, until `hits` hits since the start are recorded or lost; NULL: each hit is as soon as
     * it returns.
     */
    void (*settle)(uint64_t hits);
    /** Return the sums until now; NULL: not known, or none. */
    uint64_t (*hits)(void);
    uint64_t (*lost)(void);
    uint64_t (*bytes)(void);
    /** Returns the bytes that the sink holds in other processes; NULL: none. */
    uint64_t (*memory)(void);
    /** Switches its event on or off, in each place that has it. Returns whether that is possible; NULL: no switch. */
    bool (*set)(uint32_t sites, bool on);
    uint64_t warm_hits; /* of each thread, before anything is measured: until all memory was used once */
};
/** Ends with a name of NULL. */
extern const struct bench_sink bench_sinks[];
/** NULL: none, the mechanism is not there. */
extern const struct bench_sink *bench_sink_in_use;

struct bench_mechanism_code {
    const char *name;
    void (*bare)(uint64_t calls); /* calls a function `calls` times, */
    void (*loop)(uint64_t calls); /* ... which has the mechanism */
    /** Prepares the mechanism. Returns NULL, or why it cannot be used; NULL: nothing to prepare. */
    const char *(*begin)(bool on);
    uint32_t events_per_call;
    const void *site;  /* the instruction that others attach to, or NULL */
    const void *sites; /* many such instructions (bench_switch.h), or NULL */
    /** Switches `n` sites of its kind on or off. Returns whether that is possible; NULL: no switch. */
    bool (*set)(uint32_t n, bool on);
    /** Lets the sink's leave() be called where the hits are, if that is in no thread of the loop; NULL: it is. */
    void (*leave)(void);
};
/** Ends with NULL; also the floors, whose loops are what is measured. */
extern const struct bench_mechanism_code *const bench_mechanisms[];

/** Makes the code at `place` `bytes` long be that of `code`. Returns whether the kernel permits it. */
bool bench_patch(void *place, const void *code, uint64_t bytes);
/** Writes a jump (0xe9) or a call (0xe8) to `to` at `place`. Returns whether that is possible. */
bool bench_patch_jump(void *place, uint8_t opcode, const void *to);

/** Bytes that each event has besides, for sinks with a payload. */
extern uint32_t bench_payload_bytes;
/** BENCH_PAYLOAD_MOST letters and a NUL, from which payloads are copied. */
extern const char bench_payload[BENCH_PAYLOAD_MOST + 8];

/** Returns the time in ns. */
uint64_t bench_now(void);
/** The greatest number of calls of a batch. */
extern const uint64_t bench_calls_most;

#endif
