/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SIDEBAND_RECORD_H
#define COLLECT_SIDEBAND_RECORD_H

/*
 * Parses one record of the side band (perf_event_open(2), "Ring-buffer layout").
 *
 * Runs in: the tool. Invariant: every length in a record is checked, although the kernel wrote it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum sideband_type {
    SIDEBAND_MAP, /* a mapping was made, grew, or got other rights; the record shows its new state */
    /* a thread has a new name; with `exec`: and its process has a new address space, empty so far */
    SIDEBAND_NAME,
    SIDEBAND_FORK, /* a process (pid differs from parent_pid) or a thread */
    SIDEBAND_EXIT, /* of a thread */
    SIDEBAND_GAP,  /* `lost` records of unknown processes since since_ns; 0: a CPU was not observed */
};

struct sideband_record {
    enum sideband_type type;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    pid_t pid, tid;
    pid_t parent_pid;
    bool exec;
    uint64_t lost, since_ns;
    uint64_t start, end, page_offset; /* bytes */
    uint32_t protection, flags;       /* PROT_*, and those of MAP_* that the kernel still knows */
    uint32_t major, minor;            /* of the device */
    uint64_t inode;
    const char *text; /* path, "[stack]" and the like, "" for anonymous memory; or the name */
};

/** Bytes that the kernel appends to each record, as sideband.c requests: the time. */
#define SIDEBAND_TRAILER_BYTES 8

/**
 * Parses one record of `bytes` bytes, including its header. Returns false if it is of another kind or
 * malformed. `text` points into `data` or is a literal.
 */
bool sideband_record_parse(const void *data, size_t bytes, struct sideband_record *out);

#endif
