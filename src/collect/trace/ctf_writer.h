/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CTF_WRITER_H
#define COLLECT_CTF_WRITER_H

/*
 * Writes the events of rings as a folder of CTF 1.8: the metadata (ctf_metadata.h), and a file for each CPU of each
 * process image. Two members of each event change: the time, from ticks to nanoseconds, and the size, of which only the
 * flags remain.
 *
 * Runs in: the tool. Threads: one. Owns: its descriptors, until ctf_writer_free().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/trace/tick_clock.h"
#include "ring/ring_read.h"
#include "base/sigsafe/event_class.h"

struct ctf_writer;

/**
 * Makes the folder and its metadata, with these classes of events, which stay the caller's. `domain`: "ust" or
 * "kernel". Returns 0, or -errno with a line; in both cases the caller frees *out.
 */
int ctf_writer_new(struct ctf_writer **out, const char *folder, const char *domain,
                   const struct event_class *classes, uint32_t n, struct error *e);
struct ctf_about {
    const char *domain, *where, *clock; /* of struct ctf_trace; the last two are strings that stay, or NULL */
};
/** As ctf_writer_new(), of a trace that does not have all events, or has no times. */
int ctf_writer_new_for(struct ctf_writer **out, const char *folder, const struct ctf_about *about,
                       const struct event_class *classes, uint32_t n, struct error *e);
/** Adds a class, before the first packet that has such events. Returns 0, or -errno with a line. */
int ctf_writer_class(struct ctf_writer *w, const struct event_class *class, struct error *e);
void ctf_writer_free(struct ctf_writer *w); /* NULL is allowed */
/**
 * Adds a struct ctf_clocks to the metadata if `residual_ns` (of struct tick_clock) has grown and is above
 * TICK_CLOCK_BOUND_NS, or if CLOCK_REALTIME was set. `last`: the trace ends, add it in any case. A failure is ignored:
 * the events are complete without it.
 */
void ctf_writer_clocks(struct ctf_writer *w, double residual_ns, bool last);
/**
 * Returns by how much CLOCK_REALTIME has been set, in ns, since this process made its first folder; 0: less than
 * CTF_STEP_LEAST_NS. The times in all its folders are of the clock as it was before.
 */
int64_t ctf_writer_clock_step_ns(void);
/** Opens the stream of a CPU of an image. Returns a descriptor, which the caller closes, or -errno with a line. */
int ctf_writer_stream(struct ctf_writer *w, pid_t pid, uint64_t image_id, uint32_t cpu, struct error *e);
/**
 * Appends a packet with these events, whose words are changed. `clock` NULL: their ticks are nanoseconds. `lost`:
 * events of the CPU that were lost up to its end. Returns 0 or -errno; -EBADMSG: nothing was written; else a part may
 * have been.
 */
int ctf_writer_packet(struct ctf_writer *w, int stream, const struct ring_piece *piece, pid_t pid,
                      uint64_t image_id, uint32_t cpu, uint64_t lost, const struct tick_clock *clock);
/** Appends a packet without events, of that time, which tells how many events were lost. Returns 0 or -errno. */
int ctf_writer_losses(struct ctf_writer *w, int stream, pid_t pid, uint64_t image_id, uint32_t cpu,
                      uint64_t number, uint64_t lost, uint64_t now_ns);
/** Returns the size of such a packet. */
uint64_t ctf_writer_packet_bytes(const struct ring_piece *piece);

#endif
