/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TASK_FORMAT_H
#define COLLECT_TASK_FORMAT_H

/*
 * Records of the kernel's events about threads: a new one, a new name, another control group, a mark. The places of
 * the fields in a record are read from the events' format files (libtraceevent parses them).
 *
 * Runs in: the tool. Threads: one at a time to add formats; then any to decode. Owns: the formats, until
 * task_format_free().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct task_format;

enum task_event_kind {
    TASK_RENAMED,
    TASK_BEGAN,
    TASK_MOVED,
    TASK_MARKED, /* it wrote into trace_marker */
    TASK_EVENT_KINDS
};

/** Their names below events/ of tracefs; a kernel may lack them. */
extern const char *const task_format_events[TASK_EVENT_KINDS];

struct task_event {
    enum task_event_kind kind;
    int32_t tid;
    /* Its name, or the path of its group; it lies in the record, and need not end with a NUL. */
    const char *text;
    uint32_t text_bytes;
    /* The thread that made it, and whether it is of that one's process: of TASK_BEGAN. */
    int32_t creator;
    bool is_thread;
    /* The number of the group's, as in /proc/PID/cgroup: of TASK_MOVED. */
    int32_t hierarchy;
};

/** Never NULL: a set without formats. */
struct task_format *task_format_new(void);
void task_format_free(struct task_format *f);
/** Adds the text of an event's format. Returns 0, or -EPROTO with a line. */
int task_format_add(struct task_format *f, enum task_event_kind kind, const char *text, size_t bytes,
                    struct error *e);
/** Decodes a record. Returns 1, 0 if it is of another event, or -EBADMSG if it is too short. */
int task_format_decode(const struct task_format *f, const uint8_t *data, uint32_t bytes,
                       struct task_event *out);

#endif
