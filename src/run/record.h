/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_RECORD_H
#define RUN_RECORD_H

/* `allium run`: starts a command, follows it and its children, and makes a recording. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "run/trace/kernel_follow.h"
#include "run/trace/ring_follow.h"
#include "run/trace/trace_flight.h"

struct symbol_servers;
struct wrappers;

#define RECORD_PERIOD_DEFAULT_BYTES (512ull << 10)
#define RECORD_PERIOD_MAX_BYTES     (1ull << 40)

/* A trace, whose folder has the recording, too: `output` is not used. */
struct record_trace {
    const char *folder;              /* NULL: ./NAME.PID.trace */
    uint64_t limit_bytes;            /* of the folder; 0: the default */
    uint64_t duration_ns;            /* 0: until the command ends */
    const char *events;              /* wire/event_list.h; NULL: those of the agent */
    const char *clock;               /* of struct ring_follow_options */
    const char *where;               /* a query: the events that are kept, see ring_follow.h; NULL: all */
    const char *options;             /* trace_options of struct launch_options */
    uint32_t kernel_groups;          /* the kernel's events of these groups, too, see kernel_follow.h */
    uint64_t kernel_ring_bytes;      /* of each ring, of which a CPU has two */
    const struct probe_list *probes; /* functions whose calls are events, too; NULL: none */
    /* called before the command begins, with a line that says what the probes cost; NULL: nothing is called */
    void (*priced)(const char *line);
    /* rings overwrite, and snapshots are written at these triggers; NULL: all events are written */
    const struct trace_triggers *flight;
};

struct record_options {
    const char *output; /* NULL: ./NAME.PID.allium */
    bool force;         /* replace an existing file */
    bool follow;        /* observe children, too */
    bool keep_args;
    char *wrappers;               /* patterns for the agent besides the built-in ones; NULL: none */
    const struct wrappers *sites; /* keep accounts of call sites, with these wrappers skipped; NULL: do not */
    uint64_t period_bytes;
    uint64_t ledger_limit_bytes;    /* 0: the agent's default */
    struct symbol_servers *servers; /* for debug files; NULL: none */
    /* the command has an allocator of its own, whose requests are not observed */
    bool own_allocator;
    char **argv;
    const struct record_trace *trace; /* of all events; NULL: none is made */
    /* called when the command has begun; NULL: nothing is */
    void (*started)(pid_t pid, const char *recording);
};

enum record_stage {
    RECORD_NOT_STARTED,    /* the command did not run */
    RECORD_NOT_FOUND,      /* exec failed with ENOENT: exit code 127 */
    RECORD_NOT_EXECUTABLE, /* exec failed otherwise: exit code 126 */
    RECORD_RAN,
};

struct record_result {
    enum record_stage stage;
    int wait_status; /* of the command, if it ran */
    char *path;      /* path of the recording; the caller frees it */
    char *folder;    /* of the trace; the caller frees it */
    struct ring_follow_counts traced;
    struct kernel_follow_counts kernel;
    struct trace_flight_counts flown;
};

/**
 * Returns 0, or -errno with a line. With stage RECORD_RAN and an error, the command did run, but the
 * recording is incomplete.
 */
int record_command(const struct record_options *o, struct record_result *result, struct error *e);

#endif
