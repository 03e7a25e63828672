/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_CATALOGUE_H
#define BENCH_CATALOGUE_H

/*
 * The mechanisms and sinks of `allium bench`. Another one is a line in bench_catalogue.c and its code: a source in
 * bench/hooks/, or, if it is attached to the helper from outside, a struct bench_attachment.
 *
 * Runs in: the tool. Pure data.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "model/bench/bench_row.h"

/** Where mechanism and sink meet: a mechanism of one side goes with all sinks of that side. */
enum bench_side {
    BENCH_IN_PROGRAM,  /* a function in the program */
    BENCH_FROM_KERNEL, /* the kernel's code, a BPF program or a peer: attached from outside */
};

/** What is attached to. */
struct bench_target {
    const char *mechanism;
    pid_t pid;            /* the helper */
    const char *helper;   /* its file, */
    uint64_t site_offset; /* and the place of the instruction there */
};

/**
 * A sink outside of the helper: perf, ftrace, BPF. The helper runs the mechanism's loop, and calls no sink of its own.
 */
struct bench_attachment {
    const char *sink;
    /**
     * Attaches to all threads of the helper. Returns 0; or -ENOTSUP and a line: the reason, and the way out; then the
     * row is unavailable.
     */
    int (*attach)(const struct bench_attachment *a, const struct bench_target *target, void **state,
                  struct error *e);
    /** Return the sums until now; hits() is called first. NULL: not known. */
    uint64_t (*hits)(void *state);
    uint64_t (*lost)(void *state);
    uint64_t (*bytes)(void *state);
    /** Returns the bytes of memory that it holds now; 0: not known. NULL: none is known. */
    uint64_t (*memory)(void *state);
    /** Detaches, and frees the state. The helper may run, or have ended. */
    void (*detach)(void *state);
    /* attaching takes more than a few milliseconds: helper and attachment stay from one turn to the next */
    bool is_slow;
};
/** Ends with a sink of NULL. */
extern const struct bench_attachment bench_attachments[];

struct bench_mechanism {
    const char *name;
    const char *floor; /* a key of bench_floor_list */
    bool is_trap;      /* its floor counts, whatever the sink */
    enum bench_side side;
    bool is_default;
    uint32_t needs;  /* enum bench_need */
    const char *doc; /* half a line */
};

struct bench_sink_doc {
    const char *name;
    const char *floor; /* NULL: that of the mechanism */
    enum bench_side side;
    bool is_default;
    enum bench_keeps keeps;
    /* of its time stamps: tsc, mono, as of `allium trace --clock`, or local, of ftrace and perf; NULL: none */
    const char *clock;
    const char *doc;
};

struct bench_floor {
    const char *name, *key; /* shown; in JSON and for the helper */
    unsigned threads;
};

/** Each ends with a name of NULL. */
extern const struct bench_mechanism bench_mechanism_list[];
extern const struct bench_sink_doc bench_sink_list[];
extern const struct bench_floor bench_floor_list[];

/** Returns whether events of the sink can have a payload (--payload). */
bool bench_has_payload(const struct bench_sink_doc *s);
/** Returns whether the two make a row. */
bool bench_makes_row(const struct bench_mechanism *m, const struct bench_sink_doc *s);
/** Returns the key of the floor to which their row is compared. */
const char *bench_floor_of(const struct bench_mechanism *m, const struct bench_sink_doc *s);
/** Returns NULL if the program itself does all. */
const struct bench_attachment *bench_find_attachment(const char *sink);

#endif
