/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SIDEBAND_RECORD_H
#define COLLECT_SIDEBAND_RECORD_H

/*
 * One record of the side band, taken out of what the kernel writes (perf_event_open(2), "Ring-buffer layout").
 *
 * Runs in: the tool. Invariant: every length that a record tells is checked, although the kernel wrote it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum sideband_type {
    SIDEBAND_MAP,  /* a mapping was made, grown, or got other rights; as it is since */
    SIDEBAND_NAME, /* a thread has another name; `exec`: and its process another address space, empty so far */
    SIDEBAND_FORK, /* a process (pid differs from parent_pid) or a thread */
    SIDEBAND_EXIT, /* of a thread */
    SIDEBAND_GAP,  /* `lost` records from since_ns on, nobody knows whose; 0: a CPU was not listened to */
};

struct sideband_record {
    enum sideband_type type;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    pid_t pid, tid;
    pid_t parent_pid;
    bool exec;
    uint64_t lost, since_ns;
    uint64_t start, end, page_offset; /* bytes */
    uint32_t protection, flags;       /* PROT_*, and of MAP_* what the kernel still knows */
    uint32_t major, minor;            /* of the device */
    uint64_t inode;
    const char *text; /* path, "[stack]" and its like, "" for anonymous memory; or the name */
};

/** Bytes that the kernel puts behind each record, as sideband.c asks for them: the time. */
#define SIDEBAND_TRAILER_BYTES 8

/**
 * Reads one record of `bytes` bytes, its header included. False: one of another kind, or malformed. `text` points into
 * `data` or is a literal.
 */
bool sideband_record_parse(const void *data, size_t bytes, struct sideband_record *out);

#endif
