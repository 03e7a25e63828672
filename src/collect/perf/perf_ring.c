/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/perf/perf_ring.h"

#include <string.h>

#define RECORD_BYTES_MAX 65536

static void copy_out(const struct perf_ring *r, uint64_t from, void *out, size_t bytes)
{
    const unsigned char *base = (const unsigned char *)r->page + r->page_bytes;
    size_t at = from & (r->bytes - 1), first = bytes < r->bytes - at ? bytes : r->bytes - at;
    memcpy(out, base + at, first);
    memcpy((unsigned char *)out + first, base, bytes - first);
}

bool perf_ring_read(const struct perf_ring *r, uint64_t *tail, perf_ring_fn *take, void *arg)
{
    static _Thread_local union {
        uint64_t aligned;
        struct perf_event_header header;
        unsigned char bytes[RECORD_BYTES_MAX];
    } record;
    uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE), at = r->page->data_tail;
    *tail = head;
    while (head - at >= sizeof(record.header)) {
        copy_out(r, at, &record.header, sizeof(record.header));
        if (record.header.size < sizeof(record.header) || record.header.size > head - at)
            return false; /* it is not known where the next record begins */
        copy_out(r, at, record.bytes, record.header.size);
        take(arg, &record.header);
        at += record.header.size;
    }
    return true;
}

void perf_ring_release(const struct perf_ring *r, uint64_t tail)
{
    __atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
}
