/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_SAVED_H
#define COLLECT_TRACE_SAVED_H

/*
 * Pages of the kernel's trace buffers that were kept, and what is needed to read them: the folder of `allium sys record
 * --raw` (trace_folder.c), or a file of trace-cmd (trace_dat.c).
 *
 * Runs in: the tool. Threads: one. Owns: its texts and descriptors, until trace_saved_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"
#include "collect/kernel/trace/trace_reader.h"
#include "collect/kernel/trace/tracing_data.h"

struct trace_saved {
    struct tracing_data formats;
    struct VEC(struct trace_kept_pages) cpus;
    struct VEC(int) fds; /* that are closed with it */
    char clock[32];      /* "mono", "local" ...; "": not known */
    char release[256];   /* of the kernel; "": not known */
    unsigned char build_id[64];
    size_t build_id_len; /* of the kernel; 0: not known */
    bool has_realtime;
    int64_t realtime_ns;    /* CLOCK_REALTIME minus that clock */
    uint64_t page_bytes;    /* of the machine; 0: not known */
    uint64_t possible_cpus; /* that the machine may have; 0: not known */
    struct buf tasks;       /* processes and control groups, as allium writes them; see sys/record/tasks.h */
    uint64_t end_ns,
        settle_ns;   /* when the recording ended, and how long frees were noted after it; 0: not known */
    int32_t own_tid; /* the thread that recorded, if it is of allium; 0: not known */
    bool has_lost;   /* the kernel's own counts are there; the marks in pages say no more */
    uint64_t lost;
    bool has_unread_buffers; /* of several instances, only the first one with events is read */
};

/** Opens the folder. Returns 0, or -errno with a line. */
int trace_folder_open(struct trace_saved *s, const char *path, struct error *e);
/** Opens a file of trace-cmd, of which nothing was read. `fd` must outlive it. Returns as above. */
int trace_dat_open(struct trace_saved *s, int fd, uint64_t bytes, const char *path, struct error *e);
void trace_saved_release(struct trace_saved *s);

/** Adds an empty temporary file to the descriptors. Returns as above. */
int trace_saved_temporary(struct trace_saved *s, struct error *e);

/** Refuses what was recorded on a machine of another architecture. Returns 0, or -ENOTSUP with a line. */
int trace_saved_check_machine(const char *path, const char *machine, struct error *e);

#endif
