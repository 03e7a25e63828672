/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of trace-cmd, of the versions 6 and 7: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/kernel/trace/packed_input.h"
#include "collect/kernel/trace/trace_chunks.h"
#include "collect/kernel/trace/trace_losses.h"
#include "collect/kernel/trace/trace_saved.h"

enum option {
    OPTION_DONE = 0,
    OPTION_CPUSTAT = 2,
    OPTION_BUFFER = 3,
    OPTION_CLOCK = 4,
    OPTION_UNAME = 5,
    OPTION_CPUS = 8,
    OPTION_HEADER_PAGE = 16, /* from here on of version 7: each says where its section is */
    OPTION_FTRACE_FORMATS = 17,
    OPTION_EVENT_FORMATS = 18,
    OPTION_KALLSYMS = 19,
    OPTION_COMMS = 21,
};

#define VERSION_LEAST 6u
#define VERSION_MOST  7u
#define NAME_BYTES    256u
#define CPUS_MAX      UINT16_MAX
#define OPTION_MAX    (16u << 20)
#define PACKED        1u  /* of a section */
#define WORD_BYTES    10u /* "options  ", "flyrecord", with the NUL */

struct dat {
    struct trace_saved *to;
    const char *path;
    struct trace_cursor file;
    struct tracing_data_head head;
    enum trace_packing packing;
    uint32_t cpus;   /* of version 6 */
    bool has_unread; /* another buffer has events, too */
    struct error *e;
};

static int damaged(const struct dat *d, int bad)
{
    if (bad == -EBADMSG)
        return error_set(d->e, EBADMSG, "%s: is damaged or cut", d->path);
    return *d->e->text ? bad : error_set(d->e, -bad, "%s: %s", d->path, strerror(-bad));
}

/* "[local] global counter", or "mono". */
static void set_clock(struct dat *d, const char *text)
{
    const char *bracket = strchr(text, '[');
    if (sscanf(bracket ? bracket + 1 : text, "%31[a-z0-9_-]", d->to->clock) != 1)
        d->to->clock[0] = '\0';
}

/* ---- buffers ---- */

/* The pages of a CPU, which may be packed: then they are unpacked into a temporary file. */
static int add_pages(struct dat *d, uint32_t cpu, uint64_t at, uint64_t bytes, bool packed)
{
    if (at > d->file.end || bytes > d->file.end - at)
        return -EBADMSG;
    if (!bytes)
        return 0;
    struct trace_kept_pages pages = {cpu, d->file.fd, at, at + bytes};
    if (packed) {
        /* what trace-cmd writes as their size does not count the number of chunks before them */
        const uint64_t more = d->file.end - at - bytes < 4 ? d->file.end - at - bytes : 4;
        struct trace_cursor c = {.fd = d->file.fd, .at = at, .end = at + bytes + more};
        int bad = d->to->fds.len ? 0 : trace_saved_temporary(d->to, d->e);
        bad = bad ? bad : trace_chunks_unpack(&c, d->packing, d->to->fds.at[0], &pages.at, &pages.end);
        if (bad)
            return bad;
        pages.fd = d->to->fds.at[0];
    }
    *vec_push(&d->to->cpus) = pages;
    return 0;
}

/* Of several buffers, the first one with events is read. */
static bool is_wanted(struct dat *d, uint64_t bytes)
{
    d->has_unread |= d->to->cpus.len && bytes;
    return !d->to->cpus.len;
}

static int read_cpu_table(struct dat *d, struct trace_cursor *c)
{
    struct trace_cursor table = *c;
    uint64_t at, bytes, sum = 0;
    int bad = 0;
    for (uint32_t cpu = 0; !bad && cpu < d->cpus; cpu++) {
        bad = trace_cursor_u64(&table, &at);
        bad = bad ? bad : trace_cursor_u64(&table, &bytes);
        sum += bad ? 0 : bytes;
    }
    if (bad || !is_wanted(d, sum))
        return bad;
    for (uint32_t cpu = 0; !bad && cpu < d->cpus; cpu++) {
        bad = trace_cursor_u64(c, &at);
        bad = bad ? bad : trace_cursor_u64(c, &bytes);
        bad = bad ? bad : add_pages(d, cpu, at, bytes, false);
    }
    return bad;
}

/* A word, and the table of the CPUs behind it. */
static int read_buffer6(struct dat *d, struct trace_cursor *c)
{
    char word[WORD_BYTES];
    int bad = trace_cursor_take(c, word, sizeof(word));
    if (bad)
        return bad;
    if (!memcmp(word, "latency", 7))
        return error_set(d->e, ENOTSUP, "%s: is of a latency tracer, and has no events", d->path);
    return memcmp(word, "flyrecord", sizeof(word)) != 0 ? -EBADMSG : read_cpu_table(d, c);
}

/* Version 7: where the section is, names of the instance and its clock, sizes, and the CPUs. */
static int read_buffer7(struct dat *d, struct trace_cursor *c)
{
    uint64_t section, at, bytes;
    uint32_t page_bytes, cpus, cpu;
    uint8_t flags[4];
    struct buf clock = BUF_INIT, name = BUF_INIT;
    int bad = trace_cursor_u64(c, &section);
    bad = bad ? bad : trace_cursor_text(c, NAME_BYTES, &name);
    bad = bad ? bad : trace_cursor_text(c, NAME_BYTES, &clock);
    bad = bad ? bad : trace_cursor_u32(c, &page_bytes);
    bad = bad ? bad : trace_cursor_u32(c, &cpus);
    struct trace_cursor head = {.fd = d->file.fd, .at = section, .end = d->file.end};
    bad = bad ? bad : trace_cursor_take(&head, flags, sizeof(flags));
    const bool wanted = !bad && is_wanted(d, c->end - c->at);
    for (uint32_t k = 0; wanted && !bad && k < cpus; k++) {
        bad = trace_cursor_u32(c, &cpu);
        bad = bad ? bad : trace_cursor_u64(c, &at);
        bad = bad ? bad : trace_cursor_u64(c, &bytes);
        bad = bad ? bad : cpu > CPUS_MAX ? -EBADMSG : add_pages(d, cpu, at, bytes, flags[2] & PACKED);
    }
    if (wanted && !bad && d->to->cpus.len)
        set_clock(d, buf_str(&clock));
    buf_release(&clock);
    buf_release(&name);
    return bad;
}

/* ---- options ---- */

/* Reads a section of version 7 with `read`. */
static int read_section(struct dat *d, struct trace_cursor *option,
                        int (*read)(struct tracing_data *t, struct trace_cursor *c))
{
    uint64_t at, bytes;
    uint8_t head[8];
    struct buf unpacked = BUF_INIT;
    int bad = trace_cursor_u64(option, &at);
    struct trace_cursor c = {.fd = d->file.fd, .at = at, .end = d->file.end};
    bad = bad ? bad : trace_cursor_take(&c, head, sizeof(head));
    bad = bad ? bad : trace_cursor_u64(&c, &bytes);
    if (!bad && bytes > c.end - c.at)
        bad = -EBADMSG;
    if (bad)
        return bad;
    c.end = c.at + bytes;
    if (head[2] & PACKED) {
        bad = trace_chunk_unpack(&c, d->packing, &unpacked);
        c = (struct trace_cursor){
            .fd = -1, .memory = (const uint8_t *)buf_str(&unpacked), .end = unpacked.len};
    }
    bad = bad ? bad : read(&d->to->formats, &c);
    buf_release(&unpacked);
    return bad;
}

/* "Linux host 6.1.0 x86_64" */
/* "Linux NODE RELEASE MACHINE". */
static int check_machine(struct dat *d, struct trace_cursor *c)
{
    struct buf text = BUF_INIT;
    int bad = trace_cursor_bytes(c, c->end - c->at, 4096, &text);
    const char *last = bad ? NULL : strrchr(buf_str(&text), ' ');
    if (last)
        sscanf(buf_str(&text), "%*s %*s %255s", d->to->release);
    bad = last ? trace_saved_check_machine(d->path, last + 1, d->e) : bad;
    buf_release(&text);
    return bad;
}

/* An instance's buffer is somewhere behind. */
static int read_instance6(struct dat *d, struct trace_cursor *option)
{
    uint64_t at;
    int bad = trace_cursor_u64(option, &at);
    struct trace_cursor c = {.fd = d->file.fd, .at = at, .end = d->file.end};
    return bad ? bad : read_buffer6(d, &c);
}

static int take_stats(struct dat *d, const struct buf *text)
{
    d->to->has_lost = true;
    d->to->lost += trace_losses_of(buf_str(text));
    return 0;
}

static int take_cpus(struct dat *d, struct trace_cursor *c)
{
    uint32_t cpus;
    int bad = trace_cursor_u32(c, &cpus);
    d->to->possible_cpus = bad || cpus > CPUS_MAX ? 0 : cpus;
    return bad;
}

static int take_option(struct dat *d, uint16_t id, const struct buf *data)
{
    struct trace_cursor c = {.fd = -1, .memory = (const uint8_t *)buf_str(data), .end = data->len};
    switch (id) {
    case OPTION_CPUSTAT:
        return take_stats(d, data);
    case OPTION_CLOCK:
        set_clock(d, buf_str(data));
        return 0;
    case OPTION_UNAME:
        return check_machine(d, &c);
    case OPTION_CPUS:
        return take_cpus(d, &c);
    case OPTION_BUFFER:
        return d->head.version == VERSION_MOST ? read_buffer7(d, &c) : 0;
    case OPTION_HEADER_PAGE:
        return read_section(d, &c, tracing_data_read_pages);
    case OPTION_FTRACE_FORMATS:
        return read_section(d, &c, tracing_data_read_ftrace);
    case OPTION_EVENT_FORMATS:
        return read_section(d, &c, tracing_data_read_events);
    case OPTION_KALLSYMS:
        return read_section(d, &c, tracing_data_read_kallsyms);
    case OPTION_COMMS:
        return read_section(d, &c, tracing_data_read_comms);
    default:
        return 0;
    }
}

/* Takes options up to the last one. `instances`: of version 6, where the buffers of instances are. */
static int read_options(struct dat *d, struct trace_cursor *c, struct buf *instances, uint64_t *next)
{
    struct buf data = BUF_INIT;
    int bad = 0;
    *next = 0;
    for (bool done = false; !bad && !done;) {
        uint16_t id;
        uint32_t bytes = 0;
        bad = trace_cursor_take(c, &id, sizeof(id));
        done = !bad && id == OPTION_DONE;
        if (bad || (done && d->head.version == VERSION_LEAST))
            break;
        bad = trace_cursor_u32(c, &bytes);
        bad = bad ? bad : trace_cursor_bytes(c, bytes, OPTION_MAX, &data);
        if (!bad && done && data.len >= sizeof(*next))
            memcpy(next, data.data, sizeof(*next));
        else if (!bad && id == OPTION_BUFFER && instances && data.len >= 8)
            buf_add(instances, data.data, 8);
        else if (!bad && !done)
            bad = take_option(d, id, &data);
    }
    buf_release(&data);
    return bad;
}

/* ---- versions ---- */

/* Behind the table: the size of the clock's name, and the name. Older files have none. */
static void read_clock6(struct dat *d, struct trace_cursor *c)
{
    uint64_t bytes;
    struct buf text = BUF_INIT;
    if (!*d->to->clock && !trace_cursor_u64(c, &bytes) && bytes &&
        !trace_cursor_bytes(c, bytes, NAME_BYTES, &text))
        set_clock(d, buf_str(&text));
    buf_release(&text);
}

static int read_version6(struct dat *d)
{
    char word[WORD_BYTES];
    uint64_t next;
    struct trace_cursor *c = &d->file;
    struct buf instances = BUF_INIT;
    int bad = tracing_data_read_parts(&d->to->formats, d->head.version, c);
    bad = bad ? bad : trace_cursor_u32(c, &d->cpus);
    bad = bad ? bad : d->cpus > CPUS_MAX ? -EBADMSG : trace_cursor_take(c, word, sizeof(word));
    d->to->possible_cpus = d->cpus;
    if (!bad && !memcmp(word, "options  ", sizeof(word)))
        bad = read_options(d, c, &instances, &next);
    else if (!bad)
        c->at -= sizeof(word);
    bad = bad ? bad : read_buffer6(d, c);
    if (!bad)
        read_clock6(d, c);
    struct trace_cursor more = {
        .fd = -1, .memory = (const uint8_t *)buf_str(&instances), .end = instances.len};
    while (!bad && more.at < more.end)
        bad = read_instance6(d, &more);
    buf_release(&instances);
    return bad;
}

static int read_version7(struct dat *d)
{
    uint64_t next = 0, before = 0;
    uint8_t head[16];
    struct buf name = BUF_INIT, version = BUF_INIT;
    struct trace_cursor *c = &d->file;
    int bad = trace_cursor_text(c, NAME_BYTES, &name);
    bad = bad ? bad : trace_cursor_text(c, NAME_BYTES, &version);
    bad = bad ? bad : trace_cursor_u64(c, &next);
    if (!bad && trace_packing_parse(&d->packing, buf_str(&name)))
        bad = error_set(d->e, ENOTSUP, "%s: is packed with %s, which is not known here", d->path,
                        buf_str(&name));
    for (unsigned n = 0; !bad && next && n < UINT16_MAX; n++) {
        c->at = next;
        before = next;
        bad = trace_cursor_take(c, head, sizeof(head));
        bad = bad ? bad : read_options(d, c, NULL, &next);
        bad = !bad && next == before ? -EBADMSG : bad;
    }
    buf_release(&name);
    buf_release(&version);
    return bad;
}

int trace_dat_open(struct trace_saved *s, int fd, uint64_t bytes, const char *path, struct error *e)
{
    struct error own = {""};
    *s = (struct trace_saved){.own_tid = 0};
    struct dat d = {.to = s, .path = path, .file = {.fd = fd, .end = bytes}, .e = e ? e : &own};
    d.e->text[0] = '\0';
    int bad = tracing_data_read_head(&d.head, &d.file, path, d.e);
    if (bad)
        return bad;
    if (d.head.version < VERSION_LEAST || d.head.version > VERSION_MOST)
        return error_set(d.e, ENOTSUP, "%s: is of version %u of trace-cmd's files; 6 and 7 are known", path,
                         d.head.version);
    s->page_bytes = d.head.page_bytes;
    bad = d.head.version == VERSION_LEAST ? read_version6(&d) : read_version7(&d);
    s->has_unread_buffers = d.has_unread;
    if (bad)
        return damaged(&d, bad);
    return s->cpus.len ? 0 : error_set(d.e, ENODATA, "%s: has no events", path);
}
