/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/perf_order.h"

void perf_order_add(struct perf_order *o, uint64_t time_ns, const void *record, size_t bytes)
{
    *vec_push(&o->entries) = (struct perf_order_entry){time_ns, o->bytes.len};
    buf_add(&o->bytes, record, bytes);
    o->newest_ns = time_ns > o->newest_ns ? time_ns : o->newest_ns;
}

/* Returns the end of the entries from `begin` on that are in order. */
static size_t end_of_run(const struct perf_order_entry *at, size_t begin, size_t n)
{
    size_t end = begin + 1;
    while (end < n && at[end - 1].time_ns <= at[end].time_ns)
        end++;
    return end < n ? end : n;
}

/* Merges [begin, middle) and [middle, end); of equal times, the earlier entry stays first. */
static void merge(struct perf_order_entry *to, const struct perf_order_entry *from, size_t begin,
                  size_t middle, size_t end)
{
    size_t a = begin, b = middle;
    for (size_t k = begin; k < end; k++)
        to[k] = b == end || (a < middle && from[a].time_ns <= from[b].time_ns) ? from[a++] : from[b++];
}

/* Each CPU's records are in order: merging the runs takes as many passes as the number of CPUs has bits. */
static void sort(struct perf_order *o)
{
    const size_t n = o->entries.len;
    while (o->room.cap < n)
        vec_room((void **)&o->room.at, &o->room.cap, o->room.cap, sizeof(*o->room.at));
    while (end_of_run(o->entries.at, 0, n) < n) {
        for (size_t begin = 0; begin < n;) {
            const size_t middle = end_of_run(o->entries.at, begin, n);
            const size_t end = middle < n ? end_of_run(o->entries.at, middle, n) : n;
            merge(o->room.at, o->entries.at, begin, middle, end);
            begin = end;
        }
        struct perf_order_entry *sorted = o->room.at;
        const size_t cap = o->room.cap;
        o->room.at = o->entries.at;
        o->room.cap = o->entries.cap;
        o->entries.at = sorted;
        o->entries.cap = cap;
    }
}

/* Keeps only the records that were not given. */
static void drop(struct perf_order *o, size_t given)
{
    struct buf kept = BUF_INIT;
    const size_t n = o->entries.len - given;
    memmove(o->entries.at, o->entries.at + given, n * sizeof(*o->entries.at));
    o->entries.len = n;
    for (size_t k = 0; k < n; k++) {
        /* a record has its length behind type and flags, as all records of perf */
        uint16_t bytes;
        memcpy(&bytes, o->bytes.data + o->entries.at[k].at + 6, sizeof(bytes));
        const size_t at = kept.len;
        buf_add(&kept, o->bytes.data + o->entries.at[k].at, bytes);
        o->entries.at[k].at = at;
    }
    if (n) {
        buf_release(&o->bytes);
        o->bytes = kept;
    } else {
        buf_reset(&o->bytes);
    }
}

int perf_order_round(struct perf_order *o, bool last, perf_order_fn *f, void *arg)
{
    size_t given = 0;
    int over = 0;
    if (o->entries.len) {
        sort(o);
        while (!over && given < o->entries.len && (last || o->entries.at[given].time_ns <= o->before_ns))
            over = f(arg, o->bytes.data + o->entries.at[given++].at);
        if (given)
            drop(o, given);
    }
    o->before_ns = o->newest_ns;
    return over;
}

void perf_order_release(struct perf_order *o)
{
    vec_release(&o->entries);
    vec_release(&o->room);
    buf_release(&o->bytes);
}
