/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_EVENT_FOLDER_H
#define COLLECT_EVENT_FOLDER_H

/*
 * Reads the events of a trace that `allium trace` wrote, in the order of time: those of all folders of CTF in it, of
 * all CPUs and process images. Nothing in the files is trusted.
 *
 * Runs in: the tool. Threads: one. Owns: descriptors, and one packet of each stream that is being read, until
 * event_folder_close().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "wire/event_class.h"

struct event_folder;

struct trace_event {
    const struct event_class *class;
    const char *domain; /* "ust" or "kernel" */
    uint64_t time_ns;   /* CLOCK_MONOTONIC */
    uint64_t realtime_ns;
    uint64_t image_id; /* 0: of the kernel */
    pid_t pid;
    uint32_t cpu, thread;
    uint16_t flags;              /* enum ring_flag */
    const unsigned char *fields; /* event_class_bytes() of them, valid until the next event is read */
};

struct trace_losses {
    uint64_t events;      /* that were lost while they were recorded */
    uint64_t cut_packets; /* that are not whole: of a recording that was cut short */
};

/** Returns whether the path is a folder that looks like a trace. */
bool event_folder_is(const char *path);
/** Returns 0, or -errno with a line. -EINVAL: it is not a trace of allium. */
int event_folder_open(struct event_folder **out, const char *path, struct error *e);
/** Returns 1; 0: that was the last event; or -errno with a line. */
int event_folder_next(struct event_folder *t, struct trace_event *out, struct error *e);
/** Returns what is known of losses: of the packets that were read until now. */
struct trace_losses event_folder_losses(const struct event_folder *t);
void event_folder_close(struct event_folder *t); /* NULL is allowed */

/** Returns the value of an integer field whose bytes begin there; EVENT_SIGNED and EVENT_ENUM are sign-extended. */
uint64_t trace_event_number(const struct event_field *f, const unsigned char *at);

#endif
