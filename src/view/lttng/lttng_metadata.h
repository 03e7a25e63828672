/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_LTTNG_METADATA_H
#define VIEW_LTTNG_METADATA_H

/*
 * The text of CTF 1.8 that LTTng 2.13 writes: each number lies at any byte, names of fields begin with a `_`. Beside
 * LTTng's own members, `env` has allium_version.
 *
 * Runs in: the tool. Threads: pure.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "view/lttng/lttng_rules.h"

/** The beginning of each packet. */
struct __attribute__((packed)) lttng_packet {
    uint32_t magic;
    uint8_t uuid[16];
    uint32_t stream_id;
    uint64_t stream_instance_id;
    uint64_t begin_ns, end_ns;
    uint64_t content_bits, packet_bits;
    uint64_t number; /* of this stream, from 0 */
    uint64_t lost;   /* events of the stream that were lost up to the packet's end */
    uint32_t cpu;
};
#define LTTNG_PACKET_MAGIC 0xC1FC1FC1u

/** The contexts of an event of a program; those of the kernel's have one byte less of `name`. */
struct __attribute__((packed)) lttng_context {
    int32_t pid, thread;
    char name[17];
};
#define LTTNG_CONTEXT_BYTES(kernel) ((uint32_t)sizeof(struct lttng_context) - ((kernel) ? 1 : 0))

/** The numbers of classes are below this. */
#define LTTNG_ID_MAX 65534u

struct lttng_trace {
    bool kernel;
    const char *name;   /* of the recorded trace */
    uint64_t offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
    uint8_t uuid[16];
    uint8_t clock_uuid[16]; /* the same in all traces with this clock */
    uint32_t uid;           /* owner of the processes; unused for the kernel */
};

/** Appends the text without the events. */
void lttng_metadata_begin(struct buf *b, const struct lttng_trace *t);
/** Appends an event. */
void lttng_metadata_class(struct buf *b, const struct lttng_trace *t, uint32_t id, const char *name,
                          const struct lttng_field *fields, uint32_t n_fields);

#endif
