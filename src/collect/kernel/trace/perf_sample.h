/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PERF_SAMPLE_H
#define COLLECT_PERF_SAMPLE_H

/*
 * One record of perf's ring buffers, as perf.data has it (perf_event_open(2), PERF_RECORD_SAMPLE, _COMM, _FORK).
 *
 * Runs in: the tool. Threads: pure. Owns: nothing; items point into the record.
 * The record may hold anything: nothing behind its end is read.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What an attribute says of the form of its records. */
struct perf_sample_form {
    uint64_t sample_type, read_format;
    bool has_trailer; /* records that are not samples end with time and so on (sample_id_all) */
    /* set by perf_sample_form_of(): bytes before thread and time in a sample, of ids behind the time, of a trailer */
    uint8_t first_bytes, id_bytes, trailer_bytes;
};

struct perf_sample_form perf_sample_form_of(uint64_t sample_type, uint64_t read_format, bool has_trailer);

enum perf_item_kind { PERF_ITEM_SAMPLE, PERF_ITEM_COMM, PERF_ITEM_FORK };

struct perf_item {
    enum perf_item_kind kind;
    uint64_t time_ns;
    int32_t pid, tid; /* process and thread */
    uint32_t cpu;
    const uint8_t *raw; /* of a sample: what the tracepoint wrote; NULL: nothing */
    uint32_t raw_bytes;
    const uint8_t *callers; /* of a sample: u64 each, at any address */
    uint64_t n_callers;
    const char *comm;   /* of a new name */
    int32_t parent_tid; /* of a new thread */
};

/* `record` begins with its struct perf_event_header, at any address, and has as many bytes as that says. */

/** Finds the id of the attribute of a record, if the form has one where it is the same for all attributes. */
bool perf_sample_id(const uint8_t *record, uint64_t sample_type, uint64_t *id);
/** Finds only the time. Returns false if there is none, or the record is too short. */
bool perf_sample_time(const uint8_t *record, const struct perf_sample_form *f, uint64_t *time_ns);
/** Reads a record. Returns false if it is of no kind above, or not whole. */
bool perf_sample_read(const uint8_t *record, const struct perf_sample_form *f, struct perf_item *out);

#endif
