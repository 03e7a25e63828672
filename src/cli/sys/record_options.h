/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_RECORD_OPTIONS_H
#define CLI_RECORD_OPTIONS_H

/*
 * The options of `allium sys record`.
 *
 * Runs in: the tool. Threads: one. Owns: a copy of the filter, until record_options_release(); other texts are those of
 * the command line.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/command.h"
#include "sys/record/record_filter.h"

/** The interval between reads: at a million events a second, of 55 bytes each, half a CPU's 8 MiB come in 70 ms. */
#define RECORD_READ_NS UINT64_C(50000000)

struct cgroup_ref;

struct record_request {
    const char *output, *vmlinux_file, *source_file, *raw;
    char own_name[32];
    bool force, quiet;
    int stacks;
    unsigned events; /* enum kernel_recorder_events */
    uint64_t buffer_bytes, interval_ns, duration_ns, settle_ns;
    struct record_filter filter;
    struct cgroup_ref *cgroup; /* that the filter names */
    const char *where;         /* NULL: all */
    struct buf filter_text;    /* these options, as they were given; "": none */
    char **command;            /* NULL: none */
};

extern const struct option_doc record_options[];

/** Returns -1 to go on, or an exit code after a line on stderr. Release it in any case. */
int record_options_parse(struct record_request *q, const struct command *c, int argc, char **argv);
void record_options_release(struct record_request *q);

#endif
