/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_LTTNG_STREAM_H
#define VIEW_LTTNG_STREAM_H

/*
 * The file of one CPU in a trace of LTTng's form: events are added in the order of time, collected into packets, and
 * written packet by packet. The payload of an event can be written again later.
 *
 * Runs in: the tool. Threads: one. Owns: memory of one packet; the file is open only while it is written.
 */

#include <stddef.h>
#include <stdint.h>

#define LTTNG_STREAM_PACKET 65536u /* bytes, at most */

struct lttng_stream {
    int folder; /* the caller's descriptor */
    uint32_t cpu;
    const uint8_t *uuid;
    unsigned char *packet; /* NULL: there is none yet */
    uint32_t used;         /* bytes of the packet; 0: it has no event */
    uint64_t packets;
    uint64_t file_at; /* where the packet will be */
    uint64_t begin_ns, last_ns;
};

/** An event: `bytes` of context and payload, at most EVENT_BYTES_MAX + 64. */
struct lttng_event {
    uint64_t time_ns;
    uint16_t id;
    const void *data;
    uint32_t bytes;
};

/**
 * Adds an event. *at becomes the place of its data in the file. `lost`: events of the CPU that were lost until now.
 * Returns 0 or -errno.
 */
int lttng_stream_add(struct lttng_stream *s, const struct lttng_event *e, uint64_t lost, uint64_t *at);
/** Writes bytes at such a place again. Returns 0 or -errno. */
int lttng_stream_change(const struct lttng_stream *s, uint64_t at, const void *data, uint32_t bytes);
/** Writes the last packet, and one without events if events were lost after it. Returns 0 or -errno. */
int lttng_stream_finish(struct lttng_stream *s, uint64_t lost);
void lttng_stream_release(struct lttng_stream *s);

#endif
