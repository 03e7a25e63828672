/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the events of a trace of LTTng-UST, which it writes as CTF 1.8: packets of a header, a context, and events
 * with large headers. Fields of LTTng-UST are not aligned on x86. (babeltrace2 shows the same layout in the trace's
 * metadata.)
 */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sigsafe/compiler.h"
#include "bench/hooks/lttng/bench_lttng.h"

#define MAGIC          0xc1fc1fc1u
#define AT_CONTENT     48u /* bits; behind magic, UUID, stream, its number, and two times */
#define AT_PACKET      56u
#define AT_DISCARDED   72u
#define HEADER_BYTES   84u
#define USUAL_BYTES    6u /* an id of 2 bytes, and 4 of the time */
#define EXTENDED_ID    0xffffu
#define EXTENDED_BYTES 14u /* that id, the id in 4 bytes, and the time in 8 */
#define STREAMS_MOST   4096u
#define CHUNK_BYTES    (2u << 20) /* more than a packet */

static uint64_t word_at(const unsigned char *p, size_t at)
{
    uint64_t word;
    memcpy(&word, p + at, sizeof(word));
    return word;
}

/* Returns whether the events end where the content ends. */
static bool count_events(struct bench_lttng_counts *c, const unsigned char *p, size_t content, size_t payload)
{
    size_t at = HEADER_BYTES;
    uint64_t n = 0;
    while (at < content) {
        uint16_t id = 0;
        if (content - at >= sizeof(id))
            memcpy(&id, p + at, sizeof(id));
        at += (id == EXTENDED_ID ? EXTENDED_BYTES : USUAL_BYTES) + payload;
        n++;
    }
    if (at != content)
        return false;
    c->events += n;
    c->bytes += content - HEADER_BYTES;
    return true;
}

size_t bench_lttng_trace_packet(struct bench_lttng_counts *c, const unsigned char *packet, size_t len,
                                size_t payload)
{
    uint32_t magic;
    if (len < HEADER_BYTES)
        return 0;
    memcpy(&magic, packet, sizeof(magic));
    const uint64_t content = word_at(packet, AT_CONTENT) / 8, bytes = word_at(packet, AT_PACKET) / 8;
    if (magic != MAGIC || content < HEADER_BYTES || content > bytes) {
        c->is_odd = true;
        return 0;
    }
    if (bytes > len)
        return 0;
    if (!count_events(c, packet, content, payload)) {
        c->is_odd = true;
        return 0;
    }
    c->discarded = word_at(packet, AT_DISCARDED);
    return bytes;
}

/* A file for each CPU, in the order of their names. */
static struct stream {
    off_t at; /* until there it has been counted */
    uint64_t discarded;
} streams[STREAMS_MOST];

static void read_stream(struct bench_lttng_counts *c, struct stream *s, const char *path, size_t payload)
{
    static unsigned char chunk[CHUNK_BYTES];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    for (size_t used = 1; used;) {
        const ssize_t n = pread(fd, chunk, sizeof(chunk), s->at);
        const uint64_t before = c->discarded;
        c->discarded = s->discarded;
        used = n > 0 ? bench_lttng_trace_packet(c, chunk, (size_t)n, payload) : 0;
        s->at += (off_t)used;
        const uint64_t more = c->discarded - s->discarded;
        s->discarded = c->discarded;
        c->discarded = before + more;
    }
    close(fd);
}

void bench_lttng_trace_read(struct bench_lttng_counts *c, const char *folder, size_t payload)
{
    char pattern[256];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/ust/pid/*/events_[0-9]*", folder);
    if (glob(pattern, 0, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc && i < STREAMS_MOST; i++)
        read_stream(c, &streams[i], found.gl_pathv[i], payload);
    globfree(&found);
}
