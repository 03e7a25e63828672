/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/lttng/lttng_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "view/lttng/lttng_metadata.h"

#define EXTENDED 65535u /* the header has more bits of the time */

static int write_at(const struct lttng_stream *s, const void *data, size_t bytes, uint64_t at)
{
    char name[32];
    snprintf(name, sizeof(name), "channel0_%u", s->cpu);
    const int fd = openat(s->folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int bad = fd < 0 ? -errno : 0;
    for (size_t done = 0; !bad && done < bytes;) {
        const ssize_t n = pwrite(fd, (const char *)data + done, bytes - done, (off_t)(at + done));
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            bad = n ? -errno : -ENOSPC;
    }
    if (fd >= 0 && close(fd) && !bad)
        bad = -errno;
    return bad;
}

static int write_packet(struct lttng_stream *s, uint64_t lost)
{
    const struct lttng_packet head = {.magic = LTTNG_PACKET_MAGIC,
                                      .stream_instance_id = s->cpu,
                                      .begin_ns = s->begin_ns,
                                      .end_ns = s->last_ns,
                                      .content_bits = 8ull * s->used,
                                      .packet_bits = 8ull * s->used,
                                      .number = s->packets++,
                                      .lost = lost,
                                      .cpu = s->cpu};
    memcpy(s->packet, &head, sizeof(head));
    memcpy(s->packet + offsetof(struct lttng_packet, uuid), s->uuid, sizeof(head.uuid));
    const int bad = write_at(s, s->packet, s->used, s->file_at);
    s->file_at += s->used;
    s->used = 0;
    return bad;
}

static void put(struct lttng_stream *s, const void *data, uint32_t bytes)
{
    memcpy(s->packet + s->used, data, bytes);
    s->used += bytes;
}

static void begin(struct lttng_stream *s, uint64_t time_ns)
{
    if (!s->packet)
        s->packet = mem_alloc(LTTNG_STREAM_PACKET);
    s->used = sizeof(struct lttng_packet);
    s->begin_ns = s->last_ns = time_ns;
}

int lttng_stream_add(struct lttng_stream *s, const struct lttng_event *e, uint64_t lost, uint64_t *at)
{
    const uint32_t most = 2 + 4 + 8 + e->bytes;
    if (most + sizeof(struct lttng_packet) > LTTNG_STREAM_PACKET)
        return -EMSGSIZE;
    const int bad = s->used && s->used + most > LTTNG_STREAM_PACKET ? write_packet(s, lost) : 0;
    if (!s->used)
        begin(s, e->time_ns);
    if (e->time_ns - s->last_ns <= UINT32_MAX) { /* readers know the upper half from the event before */
        const uint32_t low = (uint32_t)e->time_ns;
        put(s, &e->id, sizeof(e->id));
        put(s, &low, sizeof(low));
    } else {
        const uint16_t extended = EXTENDED;
        const uint32_t id = e->id;
        put(s, &extended, sizeof(extended));
        put(s, &id, sizeof(id));
        put(s, &e->time_ns, sizeof(e->time_ns));
    }
    s->last_ns = e->time_ns;
    *at = s->file_at + s->used;
    put(s, e->data, e->bytes);
    return bad;
}

int lttng_stream_change(const struct lttng_stream *s, uint64_t at, const void *data, uint32_t bytes)
{
    if (at < s->file_at)
        return write_at(s, data, bytes, at);
    memcpy(s->packet + (at - s->file_at), data, bytes);
    return 0;
}

int lttng_stream_finish(struct lttng_stream *s, uint64_t lost)
{
    if (!s->used && (s->packets || !lost))
        return 0;
    if (!s->used)
        begin(s, s->last_ns);
    return write_packet(s, lost);
}

void lttng_stream_release(struct lttng_stream *s)
{
    free(s->packet);
    s->packet = NULL;
}
