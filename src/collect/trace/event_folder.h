/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_EVENT_FOLDER_H
#define COLLECT_EVENT_FOLDER_H

/*
 * Reads the events of a trace that `allium trace` wrote, in the order of time: those of all folders of CTF in it, of
 * all CPUs and process images. Nothing in the files is trusted. Of the last packet of a stream that is not whole, the
 * whole events are read, and the packet is closed (cut_packet.h).
 *
 * Runs in: the tool. Threads: one. Owns: descriptors, and one packet of each stream that is being read, until
 * event_folder_close().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/trace/ctf_metadata.h"
#include "model/trace/event_losses.h"
#include "model/trace/trace_event.h"

struct event_folder;

struct trace_losses {
    uint64_t events; /* that were lost while they were recorded */
    /* packets that were not whole when the trace was first read (cut_packet.h): the recording was cut short */
    uint64_t cut_packets;
};

/** Returns whether the path is a folder that looks like a trace, or holds snapshots of one. */
bool event_folder_is(const char *path);
/** Returns 0, or -errno with a line. -EINVAL: it is not a trace of allium. */
int event_folder_open(struct event_folder **out, const char *path, struct error *e);
/** Returns 1; 0: that was the last event; or -errno with a line. */
int event_folder_next(struct event_folder *t, struct trace_event *out, struct error *e);
/** Returns what is known of losses: of the packets that were read until now. */
struct trace_losses event_folder_losses(const struct event_folder *t);
/**
 * Returns where and when events were lost: of the packets that were read until now. A packet tells how many events were
 * lost since the packet before it of its CPU and process image ended.
 */
const struct event_losses *event_folder_lost(const struct event_folder *t);
void event_folder_close(struct event_folder *t); /* NULL is allowed */
/** Returns the query that the program's events match (--where of allium trace); NULL: the trace has all. */
const char *event_folder_where(const struct event_folder *t);
/** Returns the word of --clock (model/trace/clock_kind.h); NULL: all events of the program have times. */
const char *event_folder_clock(const struct event_folder *t);

/** Returns the largest residual of the clock that converted times (struct tick_clock), in ns; 0: no time was converted,
 * or the recording was cut short. */
uint64_t event_folder_residual_ns(const struct event_folder *t);
/** Returns by how much the wall clock was set while the trace was recorded, in ns: the sum of all steps, below 0 if it
 * was set back; 0: less than CTF_STEP_LEAST_NS. */
int64_t event_folder_wall_step_ns(const struct event_folder *t);

/** Returns the number of folders of CTF of the trace, and what each describes. */
size_t event_folder_domains(const struct event_folder *t);
const struct ctf_trace *event_folder_domain(const struct event_folder *t, size_t n);

/** Returns the number of classes of all folders of the trace, and the classes one by one. */
size_t event_folder_classes(const struct event_folder *t);
const struct event_class *event_folder_class(const struct event_folder *t, size_t n);

#endif
