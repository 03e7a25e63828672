/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PERF_HEAD_H
#define COLLECT_PERF_HEAD_H

/*
 * What perf.data says of itself: attributes and ids of its events, formats, machine, clock. In a file that is its
 * beginning and its end; in a pipe these are records among the others. perf_data reads the rest.
 *
 * Runs in: the tool. Threads: one. Owns: everything but the descriptor, until perf_head_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "collect/kernel/trace/perf_sample.h"
#include "collect/kernel/trace/trace_cursor.h"
#include "collect/kernel/trace/tracing_data.h"

#define PERF_DATA_MAGIC       "PERFILE2"
#define PERF_DATA_MAGIC_BYTES 8u
/** The same of a big-endian machine. */
#define PERF_DATA_MAGIC_OTHER "2ELIFREP"

#define PERF_BUILD_ID_BYTES 20u

/** What the file says of itself; in a pipe, what has come so far. */
struct perf_data_about {
    char hostname[256], release[256]; /* "": not known */
    uint64_t text_address;            /* of the kernel's symbol _text; 0: not known */
    unsigned char build_id[PERF_BUILD_ID_BYTES];
    size_t build_id_len; /* of the kernel; 0: not known */
    bool has_realtime;
    int64_t realtime_ns;    /* CLOCK_REALTIME minus the clock of the records */
    bool clock_is_chosen;   /* by `perf record -k`: it is not the one that each CPU has for itself */
    uint64_t lost;          /* records that found no room */
    uint64_t unread;        /* records that are not whole */
    uint64_t sampled;       /* kinds of events of which not each one was to be recorded */
    uint32_t page_bytes;    /* of the machine; 0: not known */
    uint32_t possible_cpus; /* that the machine may have; 0: not known */
    bool has_chains;
};

struct perf_section {
    uint64_t at, bytes;
};

struct perf_head {
    const char *path; /* for error lines */
    struct trace_cursor file;
    struct perf_section data; /* its records */
    bool is_pipe;
    struct perf_data_about about;
    struct VEC(struct perf_sample_form) forms;
    struct map form_by_id; /* index into forms */
    struct tracing_data formats;
};

/* Each of these returns 0, or -errno with a line. */

/** Reads what is at the beginning and, of a file, at the end. `path` and `file` are set, all else is 0. */
int perf_head_read(struct perf_head *p, struct error *e);
/** In a pipe: reads the part with this number (perf's HEADER_OSRELEASE, for example), or the formats. */
int perf_head_read_about(struct perf_head *p, uint64_t number, struct trace_cursor *c, struct error *e);
int perf_head_read_formats(struct perf_head *p, struct trace_cursor *c, struct error *e);
/** Takes the build id of the kernel, if this record of perf, HEADER_BUILD_ID, is about it. */
void perf_head_take_build_id(struct perf_head *p, const uint8_t *record, size_t bytes);
/** Takes the address of _text, and perhaps the build id, if this PERF_RECORD_MMAP or MMAP2 is about the kernel. */
void perf_head_take_mapping(struct perf_head *p, const uint8_t *record, size_t bytes);
/** Writes the line for an error of reading. */
int perf_head_damaged(const struct perf_head *p, int bad, struct error *e);

/** Reads an attribute of this size; its ids are in `ids`, or behind it (NULL). Returns 0, -EBADMSG, or -errno. */
int perf_head_read_attr(struct perf_head *p, struct trace_cursor *c, uint64_t bytes,
                        struct trace_cursor *ids);
void perf_head_release(struct perf_head *p);

#endif
