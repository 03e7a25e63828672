/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_RECORD_H
#define RUN_RECORD_H

/*
 * `allium run`: starts a command, follows it and its children, keeps a recording.
 *
 * Runs in: the tool. Threads: one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct symbol_servers;
struct wrappers;

#define RECORD_PERIOD_DEFAULT_BYTES (512ull << 10)
#define RECORD_PERIOD_MAX_BYTES     (1ull << 40)

struct record_options {
    const char *output; /* NULL: ./NAME.PID.allium */
    bool force;         /* replace what is there */
    bool follow;        /* children too */
    bool keep_args;
    char *wrappers;               /* for the agent, beside those that are built in; NULL: none */
    const struct wrappers *sites; /* keep accounts of call sites, with these passed over; NULL: do not */
    uint64_t period_bytes;
    uint64_t ledger_limit_bytes;    /* 0: the agent's default */
    struct symbol_servers *servers; /* for debug files; NULL: none */
    bool own_allocator;             /* the command has one: what it asks that for is not observed */
    char **argv;
};

enum record_stage {
    RECORD_NOT_STARTED,    /* the command did not run */
    RECORD_NOT_FOUND,      /* exec said so: 127 */
    RECORD_NOT_EXECUTABLE, /* 126 */
    RECORD_RAN,
};

struct record_result {
    enum record_stage stage;
    int wait_status; /* of the command, once it ran */
    char *path;      /* of the recording; the caller frees it */
};

/**
 * 0, or -errno with a line; with stage RECORD_RAN the command ran even so, only the recording is not what it should be.
 */
int record_command(const struct record_options *o, struct record_result *result, struct error *e);

#endif
