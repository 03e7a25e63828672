/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/perf/sideband_record.h"

#include <string.h>

#include <linux/perf_event.h>

#define ANONYMOUS "//anon"

/* The content of a record; a read past its end yields 0 and sets `overrun`. */
struct reader {
    const unsigned char *at, *end;
    bool overrun;
};

static void take(struct reader *r, void *out, size_t bytes)
{
    memset(out, 0, bytes);
    if ((size_t)(r->end - r->at) < bytes) {
        r->overrun = true;
        r->at = r->end;
        return;
    }
    memcpy(out, r->at, bytes);
    r->at += bytes;
}

static uint32_t take_u32(struct reader *r)
{
    uint32_t v;
    take(r, &v, sizeof(v));
    return v;
}

static uint64_t take_u64(struct reader *r)
{
    uint64_t v;
    take(r, &v, sizeof(v));
    return v;
}

/* Returns the text that is the rest of the record, with its NUL and padding. */
static const char *take_text(struct reader *r)
{
    const char *text = (const char *)r->at;
    if (!memchr(r->at, 0, (size_t)(r->end - r->at))) {
        r->overrun = true;
        return "";
    }
    return text;
}

/* Ignores PERF_RECORD_MISC_MMAP_BUILD_ID: if it is set, another event requested it, see open_event() in sideband.c. */
static void take_file(struct reader *r, struct sideband_record *out)
{
    out->major = take_u32(r);
    out->minor = take_u32(r);
    out->inode = take_u64(r);
    take_u64(r); /* the inode's generation */
}

static void take_map(struct reader *r, struct sideband_record *out)
{
    out->type = SIDEBAND_MAP;
    out->pid = (pid_t)take_u32(r);
    out->tid = (pid_t)take_u32(r);
    out->start = take_u64(r);
    uint64_t bytes = take_u64(r);
    r->overrun |= !bytes || __builtin_add_overflow(out->start, bytes, &out->end);
    out->page_offset = take_u64(r);
    take_file(r, out);
    out->protection = take_u32(r);
    out->flags = take_u32(r);
    out->text = take_text(r);
    if (!strcmp(out->text, ANONYMOUS))
        out->text = "";
}

static void take_task(struct reader *r, enum sideband_type type, struct sideband_record *out)
{
    out->type = type;
    out->pid = (pid_t)take_u32(r);
    out->parent_pid = (pid_t)take_u32(r);
    out->tid = (pid_t)take_u32(r);
    take_u32(r); /* the parent's thread */
    take_u64(r); /* the time, once more */
}

static void take_name(struct reader *r, unsigned misc, struct sideband_record *out)
{
    out->type = SIDEBAND_NAME;
    out->exec = misc & PERF_RECORD_MISC_COMM_EXEC;
    out->pid = (pid_t)take_u32(r);
    out->tid = (pid_t)take_u32(r);
    out->text = take_text(r);
}

static void take_lost(struct reader *r, struct sideband_record *out)
{
    out->type = SIDEBAND_GAP;
    take_u64(r); /* the event's id */
    out->lost = take_u64(r);
}

bool sideband_record_parse(const void *data, size_t bytes, struct sideband_record *out)
{
    struct perf_event_header header;
    *out = (struct sideband_record){.text = ""};
    if (bytes < sizeof(header) + SIDEBAND_TRAILER_BYTES)
        return false;
    memcpy(&header, data, sizeof(header));
    if (header.size != bytes)
        return false;
    const unsigned char *at = data;
    struct reader r = {.at = at + sizeof(header), .end = at + bytes - SIDEBAND_TRAILER_BYTES};
    memcpy(&out->time_ns, r.end, sizeof(out->time_ns));
    if (header.type == PERF_RECORD_MMAP2)
        take_map(&r, out);
    else if (header.type == PERF_RECORD_COMM)
        take_name(&r, header.misc, out);
    else if (header.type == PERF_RECORD_FORK || header.type == PERF_RECORD_EXIT)
        take_task(&r, header.type == PERF_RECORD_FORK ? SIDEBAND_FORK : SIDEBAND_EXIT, out);
    else if (header.type == PERF_RECORD_LOST)
        take_lost(&r, out);
    else
        return false;
    return !r.overrun;
}
