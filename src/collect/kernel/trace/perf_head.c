/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/perf_head.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/kernel/trace/trace_saved.h"

/* Numbers of what a file says of itself. */
enum {
    ABOUT_FORMATS = 1,
    ABOUT_BUILD_IDS = 2,
    ABOUT_HOSTNAME = 3,
    ABOUT_RELEASE = 4,
    ABOUT_ARCH = 6,
    ABOUT_CPUS = 7,
    ABOUT_DIRECTORY = 24,
    ABOUT_CLOCK = 29
};

#define BUILD_ID_HAS_LENGTH (1u << 15) /* PERF_RECORD_MISC_BUILD_ID_SIZE */

#define HEAD_BYTES    104u
#define PIPE_BYTES    16u /* of the head, in a pipe */
#define ABOUT_NUMBERS 256u
#define ATTR_MAX      4096u

int perf_head_damaged(const struct perf_head *p, int bad, struct error *e)
{
    if (bad != -EBADMSG)
        return error_set(e, -bad, "%s: %s", p->path, strerror(-bad));
    return error_set(e, EBADMSG, "%s: is damaged or cut", p->path);
}

/* ---- what the file says of itself ---- */

/* A number of bytes, and a text with NULs behind it. */
static int read_string(struct trace_cursor *c, char out[static 256])
{
    uint32_t bytes;
    struct buf text = BUF_INIT;
    int bad = trace_cursor_u32(c, &bytes);
    bad = bad ? bad : trace_cursor_bytes(c, bytes, 4096, &text);
    snprintf(out, 256, "%s", bad ? "" : buf_str(&text));
    buf_release(&text);
    return bad;
}

/* ---- the kernel ---- */

static bool begins(const char *text, const char *end, const char *with)
{
    const size_t len = strlen(with);
    return (size_t)(end - text) >= len && !memcmp(text, with, len);
}

/* "[kernel.kallsyms]", or where perf has found the kernel's file. The names of modules are others. */
static bool is_kernel(const char *name, const char *end)
{
    const char *nul = memchr(name, '\0', (size_t)(end - name));
    end = nul ? nul : end;
    const char *slash = memrchr(name, '/', (size_t)(end - name));
    return begins(name, end, "[kernel.kallsyms]") || begins(slash ? slash + 1 : name, end, "vmlinux");
}

static void set_build_id(struct perf_head *p, const uint8_t *id, size_t len)
{
    if (len > sizeof(p->about.build_id))
        return;
    memcpy(p->about.build_id, id, len);
    p->about.build_id_len = len;
}

/* Behind the head: the machine (4 bytes), the build id, its length and 3 bytes more, the name of the file. */
void perf_head_take_build_id(struct perf_head *p, const uint8_t *record, size_t bytes)
{
    struct perf_event_header h;
    const size_t id = sizeof(h) + 4, name = id + PERF_BUILD_ID_BYTES + 4;
    if (bytes < name)
        return;
    memcpy(&h, record, sizeof(h));
    if ((h.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL &&
        is_kernel((const char *)record + name, (const char *)record + bytes))
        set_build_id(p, record + id,
                     h.misc & BUILD_ID_HAS_LENGTH ? record[id + PERF_BUILD_ID_BYTES] : PERF_BUILD_ID_BYTES);
}

/* "[kernel.kallsyms]_text", of the process -1: its file offset is the address of _text. */
void perf_head_take_mapping(struct perf_head *p, const uint8_t *record, size_t bytes)
{
    static const char text[] = "[kernel.kallsyms]_text";
    struct perf_event_header h;
    memcpy(&h, record, sizeof(h));
    const size_t offset = sizeof(h) + 24, more = sizeof(h) + 32;
    const size_t name = h.type == PERF_RECORD_MMAP2 ? more + 32 : more;
    if (bytes < name + sizeof(text) || memcmp(record + name, text, sizeof(text)) != 0)
        return;
    memcpy(&p->about.text_address, record + offset, sizeof(p->about.text_address));
    if (h.type == PERF_RECORD_MMAP2 && h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
        set_build_id(p, record + more + 4, record[more]);
}

static int read_build_ids(struct perf_head *p, struct trace_cursor *c)
{
    struct perf_event_header h;
    struct buf record = BUF_INIT;
    int bad = 0;
    while (!bad && c->end - c->at >= sizeof(h)) {
        bad = trace_cursor_take(c, &h, sizeof(h));
        c->at -= bad ? 0 : sizeof(h);
        bad = bad ? bad : h.size < sizeof(h) ? -EBADMSG : trace_cursor_bytes(c, h.size, UINT16_MAX, &record);
        if (!bad)
            perf_head_take_build_id(p, (const uint8_t *)record.data, record.len);
    }
    buf_release(&record);
    return bad;
}

/* ---- the rest ---- */

/* Version and clock, the time of day, and the clock at that time. */
static int read_clock(struct perf_head *p, struct trace_cursor *c)
{
    uint64_t versions, day_ns, clock_ns;
    int bad = trace_cursor_u64(c, &versions);
    bad = bad ? bad : trace_cursor_u64(c, &day_ns);
    bad = bad ? bad : trace_cursor_u64(c, &clock_ns);
    p->about.has_realtime = !bad;
    p->about.realtime_ns = bad ? 0 : (int64_t)(day_ns - clock_ns);
    return bad;
}

int perf_head_read_formats(struct perf_head *p, struct trace_cursor *c, struct error *e)
{
    struct tracing_data_head head;
    int bad = tracing_data_read_head(&head, c, p->path, e);
    if (bad)
        return bad;
    p->about.page_bytes = head.page_bytes;
    bad = tracing_data_read_parts(&p->formats, head.version, c);
    return bad ? perf_head_damaged(p, bad, e) : 0;
}

int perf_head_read_about(struct perf_head *p, uint64_t number, struct trace_cursor *c, struct error *e)
{
    char arch[256];
    int bad = 0;
    if (number == ABOUT_FORMATS)
        return perf_head_read_formats(p, c, e);
    if (number == ABOUT_DIRECTORY)
        return error_set(e, ENOTSUP,
                         "%s: is one of several files of perf record --threads: record without it", p->path);
    if (number == ABOUT_HOSTNAME)
        bad = read_string(c, p->about.hostname);
    else if (number == ABOUT_RELEASE)
        bad = read_string(c, p->about.release);
    else if (number == ABOUT_CPUS)
        bad = trace_cursor_u32(c, &p->about.possible_cpus);
    else if (number == ABOUT_BUILD_IDS)
        bad = read_build_ids(p, c);
    else if (number == ABOUT_CLOCK)
        bad = read_clock(p, c);
    else if (number == ABOUT_ARCH) {
        bad = read_string(c, arch);
        return bad ? perf_head_damaged(p, bad, e) : trace_saved_check_machine(p->path, arch, e);
    }
    return bad ? perf_head_damaged(p, bad, e) : 0;
}

/* An attribute, and the ids that its records have. */
int perf_head_read_attr(struct perf_head *p, struct trace_cursor *c, uint64_t bytes, struct trace_cursor *ids)
{
    struct perf_event_attr attr;
    const size_t known = bytes < sizeof(attr) ? bytes : sizeof(attr);
    memset(&attr, 0, sizeof(attr));
    int bad = bytes < PERF_ATTR_SIZE_VER0 || bytes > ATTR_MAX ? -EBADMSG : trace_cursor_take(c, &attr, known);
    bad = bad ? bad : trace_cursor_skip(c, bytes - known);
    if (bad)
        return bad;
    if (attr.type == PERF_TYPE_TRACEPOINT) {
        p->about.sampled += attr.freq || attr.sample_period != 1;
        p->about.has_chains |= (attr.sample_type & PERF_SAMPLE_CALLCHAIN) != 0;
        p->about.clock_is_chosen = attr.use_clockid;
    }
    uint64_t id;
    struct trace_cursor *from = ids ? ids : c;
    while (from->end - from->at >= 8 && !(bad = trace_cursor_u64(from, &id)))
        map_put_u64(&p->form_by_id, id, p->forms.len, NULL);
    *vec_push(&p->forms) = perf_sample_form_of(attr.sample_type, attr.read_format, attr.sample_id_all);
    return bad;
}

/* Where a part of the file is. It must lie in it. */
static int take_section(struct perf_head *p, struct trace_cursor *c, struct perf_section *out)
{
    int bad = trace_cursor_u64(c, &out->at);
    bad = bad ? bad : trace_cursor_u64(c, &out->bytes);
    return bad ? bad : out->at > p->file.end || out->bytes > p->file.end - out->at ? -EBADMSG : 0;
}

static struct trace_cursor part_of(const struct perf_head *p, struct perf_section s)
{
    return (struct trace_cursor){.fd = p->file.fd, .at = s.at, .end = s.at + s.bytes};
}

static int read_attrs(struct perf_head *p, struct perf_section attrs, uint64_t attr_bytes)
{
    struct trace_cursor c = part_of(p, attrs);
    int bad =
        attr_bytes < 16 || attr_bytes > ATTR_MAX || attrs.bytes / attr_bytes > UINT16_MAX ? -EBADMSG : 0;
    for (uint64_t k = 0; !bad && k < attrs.bytes / attr_bytes; k++) {
        struct perf_section ids;
        struct trace_cursor place = c, ids_at;
        place.at += attr_bytes - 16;
        bad = take_section(p, &place, &ids);
        ids_at = part_of(p, ids);
        bad = bad ? bad : perf_head_read_attr(p, &c, attr_bytes - 16, &ids_at);
        c.at = place.at;
    }
    return bad;
}

int perf_head_read(struct perf_head *p, struct error *e)
{
    struct trace_cursor *c = &p->file;
    uint64_t head_bytes, attr_bytes, has[ABOUT_NUMBERS / 64];
    struct perf_section attrs, types, part;
    char magic[PERF_DATA_MAGIC_BYTES];
    int bad = trace_cursor_take(c, magic, sizeof(magic));
    bad = bad ? bad : trace_cursor_u64(c, &head_bytes);
    if (!bad && !memcmp(magic, PERF_DATA_MAGIC_OTHER, sizeof(magic)))
        return error_set(e, ENOTSUP, "%s: is of a big-endian machine: import it on one", p->path);
    if (!bad && memcmp(magic, PERF_DATA_MAGIC, sizeof(magic)) != 0)
        return error_set(e, EBADMSG, "%s: is not a file of perf record", p->path);
    p->is_pipe = !bad && head_bytes == PIPE_BYTES;
    p->data = (struct perf_section){PIPE_BYTES, c->end - PIPE_BYTES};
    if (bad || p->is_pipe)
        return bad ? perf_head_damaged(p, bad, e) : 0;
    bad = head_bytes < HEAD_BYTES ? -EBADMSG : trace_cursor_u64(c, &attr_bytes);
    bad = bad ? bad : take_section(p, c, &attrs);
    bad = bad ? bad : take_section(p, c, &p->data);
    bad = bad ? bad : take_section(p, c, &types);
    bad = bad ? bad : trace_cursor_take(c, has, sizeof(has));
    bad = bad ? bad : read_attrs(p, attrs, attr_bytes);
    if (!bad && !p->data.bytes)
        return error_set(e, EBADMSG, "%s: perf record was killed before it wrote the end of the file",
                         p->path);
    c->at = p->data.at + p->data.bytes;
    for (uint32_t k = 0; !bad && k < ABOUT_NUMBERS; k++) {
        if (!(has[k / 64] >> k % 64 & 1))
            continue;
        bad = take_section(p, c, &part);
        struct trace_cursor at = part_of(p, part);
        int failed = bad ? 0 : perf_head_read_about(p, k, &at, e);
        if (failed)
            return failed;
    }
    return bad ? perf_head_damaged(p, bad, e) : 0;
}

void perf_head_release(struct perf_head *p)
{
    vec_release(&p->forms);
    map_release(&p->form_by_id);
    tracing_data_release(&p->formats);
}
