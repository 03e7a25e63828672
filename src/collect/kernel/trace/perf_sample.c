/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/perf_sample.h"

#include <string.h>

/* What is left of a record. */
struct rest {
    const uint8_t *at, *end;
};

/* A record may lie at any address. */
static struct perf_event_header head_of(const uint8_t *record)
{
    struct perf_event_header h;
    memcpy(&h, record, sizeof(h));
    return h;
}

static struct rest body_of(const uint8_t *record)
{
    const struct perf_event_header h = head_of(record);
    return (struct rest){record + sizeof(h), record + (h.size < sizeof(h) ? sizeof(h) : h.size)};
}

static bool skip(struct rest *r, uint64_t bytes)
{
    if (bytes > (uint64_t)(r->end - r->at))
        return false;
    r->at += bytes;
    return true;
}

static bool take_u64(struct rest *r, uint64_t *out)
{
    if (r->end - r->at < 8)
        return false;
    memcpy(out, r->at, 8);
    r->at += 8;
    return true;
}

static bool take_u32_pair(struct rest *r, uint32_t out[static 2])
{
    if (r->end - r->at < 8)
        return false;
    memcpy(out, r->at, 8);
    r->at += 8;
    return true;
}

bool perf_sample_id(const uint8_t *record, uint64_t sample_type, uint64_t *id)
{
    struct rest r = body_of(record);
    if (!(sample_type & PERF_SAMPLE_IDENTIFIER) || r.end - r.at < 8)
        return false;
    if (head_of(record).type != PERF_RECORD_SAMPLE)
        r.at = r.end - 8;
    return take_u64(&r, id);
}

/* The bytes of the fields, as far as they are set in the type. */
static uint8_t bytes_of(uint64_t sample_type, uint64_t fields)
{
    return (uint8_t)(8 * __builtin_popcountll(sample_type & fields));
}

struct perf_sample_form perf_sample_form_of(uint64_t sample_type, uint64_t read_format, bool has_trailer)
{
    return (struct perf_sample_form){
        .sample_type = sample_type,
        .read_format = read_format,
        .has_trailer = has_trailer,
        .first_bytes = bytes_of(sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP),
        .id_bytes = bytes_of(sample_type, PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID),
        .trailer_bytes =
            bytes_of(sample_type, PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                      PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)};
}

/* The end of a record that is no sample. Its form may have fewer fields than a sample's. */
static bool find_trailer(const uint8_t *record, const struct perf_sample_form *f, struct rest *out)
{
    *out = body_of(record);
    if (!f->has_trailer || f->trailer_bytes > out->end - out->at)
        return false;
    out->at = out->end - f->trailer_bytes;
    return true;
}

bool perf_sample_time(const uint8_t *record, const struct perf_sample_form *f, uint64_t *time_ns)
{
    struct rest r = body_of(record);
    const bool is_sample = head_of(record).type == PERF_RECORD_SAMPLE;
    const uint64_t thread_bytes = f->sample_type & PERF_SAMPLE_TID ? 8 : 0;
    if (!(f->sample_type & PERF_SAMPLE_TIME) || (!is_sample && !find_trailer(record, f, &r)))
        return false;
    return skip(&r, thread_bytes + (is_sample ? f->first_bytes : 0)) && take_u64(&r, time_ns);
}

/* The values that were read with the sample. */
static bool skip_read(struct rest *r, uint64_t format)
{
    uint64_t n = 1, times = (format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 1 : 0) +
                            (format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 1 : 0);
    const uint64_t each = 1 + (format & PERF_FORMAT_ID ? 1 : 0) + (format & (1u << 4) ? 1 : 0); /* LOST */
    if (format & PERF_FORMAT_GROUP && !take_u64(r, &n))
        return false;
    return n <= UINT16_MAX && skip(r, 8 * (times + n * each));
}

static bool read_sample(const uint8_t *record, const struct perf_sample_form *f, struct perf_item *out)
{
    struct rest r = body_of(record);
    const uint64_t type = f->sample_type;
    uint32_t pair[2];
    out->kind = PERF_ITEM_SAMPLE;
    if (!skip(&r, f->first_bytes))
        return false;
    if (type & PERF_SAMPLE_TID) {
        if (!take_u32_pair(&r, pair))
            return false;
        out->pid = (int32_t)pair[0];
        out->tid = (int32_t)pair[1];
    }
    if (!(type & PERF_SAMPLE_TIME) || !take_u64(&r, &out->time_ns) || !skip(&r, f->id_bytes))
        return false;
    if (type & PERF_SAMPLE_CPU) {
        if (!take_u32_pair(&r, pair))
            return false;
        out->cpu = pair[0];
    }
    if (!skip(&r, type & PERF_SAMPLE_PERIOD ? 8 : 0) ||
        (type & PERF_SAMPLE_READ && !skip_read(&r, f->read_format)))
        return false;
    if (type & PERF_SAMPLE_CALLCHAIN) {
        if (!take_u64(&r, &out->n_callers) || out->n_callers > UINT16_MAX)
            return false;
        out->callers = r.at;
        if (!skip(&r, 8 * out->n_callers))
            return false;
    }
    if (!(type & PERF_SAMPLE_RAW))
        return true;
    if (r.end - r.at < 4)
        return false;
    memcpy(&out->raw_bytes, r.at, 4);
    out->raw = r.at + 4;
    return skip(&r, 4 + (uint64_t)out->raw_bytes);
}

static bool read_comm(const uint8_t *record, struct perf_item *out)
{
    struct rest r = body_of(record);
    uint32_t pair[2];
    out->kind = PERF_ITEM_COMM;
    if (!take_u32_pair(&r, pair) || !memchr(r.at, '\0', (size_t)(r.end - r.at)))
        return false;
    out->tid = (int32_t)pair[1];
    out->comm = (const char *)r.at;
    return true;
}

/* Process, parent, thread, parent's thread. */
static bool read_fork(const uint8_t *record, struct perf_item *out)
{
    struct rest r = body_of(record);
    uint32_t processes[2], threads[2];
    out->kind = PERF_ITEM_FORK;
    if (!take_u32_pair(&r, processes) || !take_u32_pair(&r, threads))
        return false;
    out->tid = (int32_t)threads[0];
    out->parent_tid = (int32_t)threads[1];
    return true;
}

bool perf_sample_read(const uint8_t *record, const struct perf_sample_form *f, struct perf_item *out)
{
    *out = (struct perf_item){.kind = PERF_ITEM_SAMPLE};
    if (head_of(record).type == PERF_RECORD_SAMPLE)
        return read_sample(record, f, out);
    if (!perf_sample_time(record, f, &out->time_ns))
        out->time_ns = 0; /* perf makes records of what is there when it begins */
    return (head_of(record).type == PERF_RECORD_COMM && read_comm(record, out)) ||
           (head_of(record).type == PERF_RECORD_FORK && read_fork(record, out));
}
