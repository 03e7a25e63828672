/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/perf_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/mem.h"
#include "collect/kernel/trace/perf_order.h"

/* Records that perf itself writes, behind those of the kernel. */
enum {
    HEADER_ATTR = 64,
    HEADER_TRACING_DATA = 66,
    HEADER_BUILD_ID = 67,
    FINISHED_ROUND = 68,
    AUXTRACE = 71,
    HEADER_FEATURE = 80,
    COMPRESSED = 81,
    COMPRESSED_ALIGNED = 83, /* with the number of bytes before them */
};
#define WINDOW_BYTES (1u << 20)
#define KNOWN_IDS    256u
#define UNZSTD_BYTES (1u << 17)

/* Bytes that were read and not yet taken. */
struct window {
    uint8_t *at;
    size_t begin, end, room;
};

/* An id that was looked up lately. */
struct known_id {
    uint64_t id;
    size_t form; /* MAP_NONE: not known */
};

struct perf_data {
    struct perf_head head;
    struct known_id ids[KNOWN_IDS];
    struct perf_order order;
    struct window read, unpacked;
    ZSTD_DStream *zstd;
    uint64_t lost_in_buffers,
        lost_by_count; /* the same losses in two ways: older kernels know only the first */
    perf_data_fn *f;
    void *arg;
};

/* ---- records ---- */

static const struct perf_sample_form *form_of(struct perf_data *p, const uint8_t *record)
{
    uint64_t id;
    size_t at = 0;
    if (!p->head.forms.len)
        return NULL;
    if (perf_sample_id(record, p->head.forms.at[0].sample_type, &id)) {
        struct known_id *known = &p->ids[id % KNOWN_IDS];
        if (known->id != id || !id)
            *known = (struct known_id){id, map_get_u64(&p->head.form_by_id, id)};
        at = known->form;
    }
    return &p->head.forms.at[at == MAP_NONE ? 0 : at];
}

static int give(void *arg, const void *record)
{
    struct perf_data *p = arg;
    struct perf_item item;
    if (!perf_sample_read(record, form_of(p, record), &item)) {
        p->head.about.unread++;
        return 0;
    }
    return p->f(p->arg, &item);
}

static struct perf_event_header head_of(const uint8_t *record)
{
    struct perf_event_header h;
    memcpy(&h, record, sizeof(h));
    return h;
}

/* The words behind the head of a record; 0 if it is shorter. */
static uint64_t word_of(const uint8_t *record, size_t k)
{
    uint64_t word = 0;
    if (sizeof(struct perf_event_header) + 8 * (k + 1) <= head_of(record).size)
        memcpy(&word, record + sizeof(struct perf_event_header) + 8 * k, sizeof(word));
    return word;
}

static void wait_for_turn(struct perf_data *p, const uint8_t *record)
{
    uint64_t time_ns = 0;
    const struct perf_event_header h = head_of(record);
    const struct perf_sample_form *form = form_of(p, record);
    if (!form || (!perf_sample_time(record, form, &time_ns) && h.type == PERF_RECORD_SAMPLE))
        p->head.about.unread++;
    else
        perf_order_add(&p->order, time_ns, record, h.size);
}

static int take_plain(struct perf_data *p, const uint8_t *record)
{
    switch (head_of(record).type) {
    case PERF_RECORD_SAMPLE:
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
        wait_for_turn(p, record);
        break;
    case PERF_RECORD_LOST:
        p->lost_in_buffers += word_of(record, 1);
        break;
    case PERF_RECORD_LOST_SAMPLES:
        p->lost_by_count += word_of(record, 0);
        break;
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        perf_head_take_mapping(&p->head, record, head_of(record).size);
        break;
    case HEADER_BUILD_ID:
        perf_head_take_build_id(&p->head, record, head_of(record).size);
        break;
    case FINISHED_ROUND:
        return perf_order_round(&p->order, false, give, p);
    default:
        break;
    }
    return 0;
}

static void make_room(struct window *w, size_t bytes)
{
    if (w->begin)
        memmove(w->at, w->at + w->begin, w->end - w->begin);
    w->end -= w->begin;
    w->begin = 0;
    if (w->end + bytes > w->room) {
        w->room = w->end + bytes;
        w->at = mem_resize(w->at, w->room);
    }
}

/* Takes the whole records of what was unpacked: the last one may go on in the next part. */
static int take_unpacked(struct perf_data *p)
{
    struct window *w = &p->unpacked;
    int over = 0;
    while (!over && w->end - w->begin >= sizeof(struct perf_event_header)) {
        const struct perf_event_header h = head_of(w->at + w->begin);
        if (h.size < sizeof(h))
            return -EBADMSG;
        if (h.size > w->end - w->begin)
            break;
        over = take_plain(p, w->at + w->begin);
        w->begin += h.size;
    }
    return over;
}

static int unpack(struct perf_data *p, const uint8_t *bytes, size_t n)
{
    ZSTD_inBuffer in = {bytes, n, 0};
    int over = 0;
    p->zstd = p->zstd ? p->zstd : ZSTD_createDStream();
    if (!p->zstd)
        return -ENOMEM;
    for (bool full = false; !over && (in.pos < in.size || full);) {
        make_room(&p->unpacked, UNZSTD_BYTES);
        ZSTD_outBuffer out = {p->unpacked.at + p->unpacked.end, UNZSTD_BYTES, 0};
        if (ZSTD_isError(ZSTD_decompressStream(p->zstd, &out, &in)))
            return -EBADMSG;
        full = out.pos == UNZSTD_BYTES;
        p->unpacked.end += out.pos;
        over = take_unpacked(p);
    }
    return over;
}

/* ---- reading ---- */

/* Shows the next bytes of the data. Returns 0, or -errno: -EBADMSG there are not so many. */
static int show(struct perf_data *p, size_t bytes)
{
    struct window *w = &p->read;
    if (w->end - w->begin >= bytes)
        return 0;
    make_room(w, WINDOW_BYTES - (w->end - w->begin));
    const uint64_t left = p->head.file.end - p->head.file.at;
    const size_t n = left < w->room - w->end ? left : w->room - w->end;
    int bad = w->end + n < bytes ? -EBADMSG : trace_cursor_take(&p->head.file, w->at + w->end, n);
    w->end += bad ? 0 : n;
    return bad;
}

static uint64_t left_of(const struct perf_data *p)
{
    return p->read.end - p->read.begin + (p->head.file.end - p->head.file.at);
}

/* What is behind a record belongs to it. */
static int skip_behind(struct perf_data *p, uint64_t bytes)
{
    const uint64_t here = p->read.end - p->read.begin;
    if (bytes <= here) {
        p->read.begin += bytes;
        return 0;
    }
    p->read.begin = p->read.end;
    return trace_cursor_skip(&p->head.file, bytes - here);
}

/* In a pipe, the formats are behind their record. */
static int take_formats(struct perf_data *p, uint32_t bytes, struct error *e)
{
    struct trace_cursor at = p->head.file;
    at.at -= p->read.end - p->read.begin;
    if (bytes > at.end - at.at)
        return perf_head_damaged(&p->head, -EBADMSG, e);
    at.end = at.at + bytes;
    int bad = perf_head_read_formats(&p->head, &at, e);
    return bad || !skip_behind(p, bytes) ? bad : perf_head_damaged(&p->head, -EBADMSG, e);
}

static int take_attr(struct perf_data *p, const uint8_t *record, size_t bytes)
{
    uint32_t attr_bytes = 0;
    if (bytes >= 16)
        memcpy(&attr_bytes, record + 12, sizeof(attr_bytes)); /* struct perf_event_attr, size */
    struct trace_cursor c = {.fd = -1, .memory = record, .at = 8, .end = bytes};
    return perf_head_read_attr(&p->head, &c, attr_bytes, NULL);
}

/* What does not come from the kernel's buffers, and may be big. */
static int take_record(struct perf_data *p, const uint8_t *record, struct error *e)
{
    const struct perf_event_header h = head_of(record);
    const size_t head = sizeof(h);
    int bad = 0;
    switch (h.type) {
    case HEADER_ATTR:
        memset(p->ids, 0, sizeof(p->ids));
        bad = p->head.is_pipe ? take_attr(p, record, h.size) : 0;
        break;
    case HEADER_FEATURE: {
        struct trace_cursor c = {.fd = -1, .memory = record, .at = head + 8, .end = h.size};
        return p->head.is_pipe && h.size >= head + 8
                   ? perf_head_read_about(&p->head, word_of(record, 0), &c, e)
                   : 0;
    }
    case HEADER_TRACING_DATA:
        return take_formats(p, ((uint32_t)word_of(record, 0) + 7) & ~7u, e);
    case AUXTRACE:
        bad = skip_behind(p, word_of(record, 0));
        break;
    case COMPRESSED:
        bad = unpack(p, record + head, h.size - head);
        break;
    case COMPRESSED_ALIGNED: {
        const uint64_t n = word_of(record, 0);
        bad = h.size < head + 8 || n > h.size - head - 8 ? -EBADMSG : unpack(p, record + head + 8, n);
        break;
    }
    default:
        bad = take_plain(p, record);
        break;
    }
    return bad == -EBADMSG || bad == -EIO || bad == -ENOMEM ? perf_head_damaged(&p->head, bad, e) : bad;
}

static int read_records(struct perf_data *p, struct error *e)
{
    int over = 0;
    p->head.file.at = p->head.data.at;
    p->head.file.end = p->head.data.at + p->head.data.bytes;
    while (!over && left_of(p)) {
        struct perf_event_header h;
        over = show(p, sizeof(h));
        h = over ? (struct perf_event_header){.size = 0} : head_of(p->read.at + p->read.begin);
        over = over ? over : h.size < sizeof(h) ? -EBADMSG : show(p, h.size);
        if (over)
            return perf_head_damaged(&p->head, over, e);
        const uint8_t *record = p->read.at + p->read.begin;
        p->read.begin += h.size;
        over = take_record(p, record, e);
    }
    return over;
}

int perf_data_read(struct perf_data *p, perf_data_fn *f, void *arg, struct error *e)
{
    p->f = f;
    p->arg = arg;
    int over = read_records(p, e);
    int late = perf_order_round(&p->order, true, give, p);
    p->head.about.lost = p->lost_in_buffers > p->lost_by_count ? p->lost_in_buffers : p->lost_by_count;
    return over ? over : late;
}

int perf_data_open(struct perf_data **out, int fd, uint64_t bytes, const char *path, struct error *e)
{
    struct perf_data *p = *out = mem_alloc(sizeof(*p));
    p->head.path = path;
    p->head.file = (struct trace_cursor){.fd = fd, .end = bytes};
    int bad = perf_head_read(&p->head, e);
    if (!bad)
        return 0;
    perf_data_close(p);
    *out = NULL;
    return bad;
}

void perf_data_close(struct perf_data *p)
{
    if (!p)
        return;
    perf_head_release(&p->head);
    perf_order_release(&p->order);
    free(p->read.at);
    free(p->unpacked.at);
    ZSTD_freeDStream(p->zstd);
    free(p);
}

const struct tracing_data *perf_data_formats(const struct perf_data *p)
{
    return &p->head.formats;
}

const struct perf_data_about *perf_data_about(const struct perf_data *p)
{
    return &p->head.about;
}
