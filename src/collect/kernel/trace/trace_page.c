/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/trace_page.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Flags in the commit word, above the number of bytes: some events before this page were lost; how many is stored
 * behind the last record. */
#define LOST_EVENTS (1u << 31)
#define LOST_STORED (1u << 30)
#define BYTES_MASK  ((1u << 20) - 1)

#define PAGE_BYTES_MAX (1u << 20)

/* The header of a record: 5 bits of type or length, 27 bits of time. */
#define TYPE_BITS   5
#define TIME_BITS   27
#define HEADER      4u
#define PADDING     29u
#define TIME_EXTEND 30u
#define TIME_STAMP  31u
/* A TIME_STAMP has 59 bits of a time; the others are those of the time before it. */
#define STAMP_BITS 59

static uint32_t word_at(const uint8_t *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;" */
static int find_field(const char *text, const char *name, uint32_t *at, uint32_t *bytes)
{
    char wanted[32];
    snprintf(wanted, sizeof(wanted), " %s;", name);
    const char *line = strstr(text, wanted);
    return line && sscanf(line + strlen(wanted), " offset:%u; size:%u;", at, bytes) == 2 ? 0 : -EPROTO;
}

int trace_page_layout_parse(struct trace_page_layout *l, const char *text)
{
    uint32_t time_bytes, data_bytes;
    if (find_field(text, "timestamp", &l->time_at, &time_bytes) ||
        find_field(text, "commit", &l->commit_at, &l->commit_bytes) ||
        find_field(text, "data", &l->data_at, &data_bytes))
        return -EPROTO;
    l->page_bytes = l->data_at + data_bytes;
    bool fits = data_bytes <= PAGE_BYTES_MAX && time_bytes == 8 &&
                (l->commit_bytes == 4 || l->commit_bytes == 8) && l->data_at <= 64 &&
                l->time_at + time_bytes <= l->data_at && l->commit_at + l->commit_bytes <= l->data_at;
    return fits ? 0 : -EPROTO;
}

int trace_page_begin(struct trace_page *p, const void *page, size_t bytes, const struct trace_page_layout *l)
{
    const uint8_t *at = page;
    *p = (struct trace_page){.at = at, .end = at};
    if (bytes < l->data_at)
        return -EBADMSG;
    const uint32_t commit = word_at(at + l->commit_at);
    const size_t used = commit & BYTES_MASK;
    if (used > bytes - l->data_at)
        return -EBADMSG;
    memcpy(&p->time, at + l->time_at, sizeof(p->time));
    p->at = at + l->data_at;
    p->end = p->at + used;
    p->lost = commit & LOST_EVENTS ? TRACE_PAGE_LOST_UNKNOWN : 0;
    if (commit & LOST_STORED && bytes - l->data_at - used >= sizeof(p->lost))
        memcpy(&p->lost, p->end, sizeof(p->lost));
    return 0;
}

static void set_stamp(struct trace_page *p, uint64_t stamp)
{
    const uint64_t low = (UINT64_C(1) << STAMP_BITS) - 1;
    uint64_t time = (p->time & ~low) | stamp;
    if (p->time > low && time < p->time) /* the lower bits have begun again */
        time += low + 1;
    p->time = time;
}

int trace_page_next(struct trace_page *p, struct trace_record *r)
{
    while (p->end - p->at >= (ptrdiff_t)HEADER) {
        const uint32_t header = word_at(p->at), type = header & ((1u << TYPE_BITS) - 1);
        const uint64_t time = header >> TYPE_BITS;
        const size_t left = (size_t)(p->end - p->at) - HEADER;
        const uint8_t *data = p->at + HEADER;
        if (type == PADDING && !time) /* up to the end of the page */
            break;
        if (type >= 1 && type < PADDING) {
            const uint32_t bytes = type * 4;
            if (bytes > left)
                return -EBADMSG;
            p->time += time;
            p->at = data + bytes;
            *r = (struct trace_record){p->time, data, bytes};
            return 1;
        }
        if (left < HEADER)
            return -EBADMSG;
        const uint32_t word = word_at(data);
        if (type == TIME_EXTEND || type == TIME_STAMP) {
            if (type == TIME_EXTEND)
                p->time += time + ((uint64_t)word << TIME_BITS);
            else
                set_stamp(p, time + ((uint64_t)word << TIME_BITS));
            p->at = data + HEADER;
            continue;
        }
        /* The word is the length, with itself. */
        if (word < HEADER || word > left)
            return -EBADMSG;
        p->at = data + word;
        p->time +=
            type == PADDING && time == 1 ? 0 : time; /* 1 stands for 0 there, which is the end of a page */
        if (type == PADDING)                         /* a record that was discarded */
            continue;
        *r = (struct trace_record){p->time, data + HEADER, word - HEADER};
        return 1;
    }
    p->at = p->end;
    return 0;
}
