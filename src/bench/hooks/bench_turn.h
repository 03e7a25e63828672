/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_TURN_H
#define BENCH_TURN_H

/*
 * What `allium bench` and its helper program (bench_hooks.c) tell one another. The helper is started with the names of
 * a mechanism and a sink, a number of threads, and the bytes of the payload. It writes a struct bench_hello, and then a
 * struct bench_reply for each struct bench_request, until its standard input ends.
 *
 * Runs in: the tool, the helper. Pure data.
 */

#include <stdint.h>

#define BENCH_HELPER "allium-bench-hooks"

enum bench_mode {
    BENCH_BATCH,    /* many calls in a row, timed together */
    BENCH_SINGLE,   /* each call timed alone */
    BENCH_ISOLATED, /* ..., one in 10 us */
    BENCH_COLD,     /* ..., after other data has displaced those of the mechanism from the caches */
    BENCH_SWITCH,   /* `shots` sites are switched on and off, some times */
};

#define BENCH_SHOTS        256u
#define BENCH_PAYLOAD_MOST 4000u /* bytes */
#define BENCH_WORDS        240u
#define BENCH_SWITCHES     5u /* of a request */

struct bench_hello {
    uint32_t version;         /* BENCH_VERSION */
    uint32_t is_ready;        /* 0: `text` says why not */
    uint32_t events_per_call; /* times that the mechanism calls the sink for a call of the program */
    uint32_t knows_hits;      /* the sink counts its hits */
    uint64_t site_offset;     /* place of the instruction to which others attach, in the helper's file */
    uint64_t sites_offset;    /* of many such instructions (bench_switch.h); 0: there are none */
    char text[BENCH_WORDS];   /* why mechanism or sink cannot be used here: the reason, the way out */
};
#define BENCH_VERSION 2u

struct bench_request {
    uint32_t mode;
    uint32_t shots; /* for all modes but batches; at most BENCH_SHOTS; or sites, at most BENCH_SITES_MOST */
    uint64_t target_ns; /* for batches: as many calls as take this long */
};

/* All times are of calls with the mechanism, and `bare` of the same calls without it, measured just before. */
struct bench_reply {
    uint32_t is_switched; /* of a batch: the kernel took the CPU away from a thread meanwhile */
    uint32_t is_apart;    /* the threads ran at the same time for less than 85 % of the time */
    uint64_t calls;       /* with the mechanism, by all threads */
    double bare_ns, ns;   /* per call, mean of all threads; of batches */
    /* Of the sink: `hits` are seen in what it has recorded; `lost` it knows to be lost. */
    uint64_t expected, hits, lost, bytes;
    uint32_t n_shots, n_dropped; /* single calls; dropped: the kernel took the CPU away meanwhile */
    uint64_t memory_bytes;       /* that the sink has taken since it began; 0: not known */
    /* Of BENCH_SWITCH, `bare` is off, and n_shots is 0 if there is no switch. */
    uint32_t bare_shots_ns[BENCH_SHOTS], shots_ns[BENCH_SHOTS];
};

#endif
