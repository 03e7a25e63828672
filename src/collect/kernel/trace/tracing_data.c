/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/tracing_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More is taken for damage. */
#define FORMAT_MAX   (1u << 20)
#define KALLSYMS_MAX (256u << 20)
#define PRINTK_MAX   (64u << 20)
#define COMMS_MAX    (64u << 20)
#define EVENTS_MAX   (1u << 16)
#define NAME_MAX_    256u

#define COMMS_SINCE 6u /* of version 0.6 of perf, which writes 0.5 without them, and of trace.dat */

void tracing_data_release(struct tracing_data *t)
{
    vec_each (struct buf, text, &t->texts)
        buf_release(text);
    vec_release(&t->texts);
    map_release(&t->index);
    buf_release(&t->kallsyms);
    buf_release(&t->comms);
}

const struct buf *tracing_data_text(const struct tracing_data *t, const char *path)
{
    size_t at = map_get(&t->index, path, strlen(path));
    return at == MAP_NONE ? NULL : &t->texts.at[at];
}

void tracing_data_add_text(struct tracing_data *t, const char *path, struct buf *text)
{
    bool added;
    map_put(&t->index, path, strlen(path), t->texts.len, &added);
    if (added)
        *vec_push(&t->texts) = *text;
    else
        buf_release(text);
    *text = (struct buf)BUF_INIT;
}

static int wrong_machine(const char *path, const char *what, struct error *e)
{
    return error_set(e, ENOTSUP, "%s: is of a %s machine: import it on one", path, what);
}

int tracing_data_read_head(struct tracing_data_head *h, struct trace_cursor *c, const char *path,
                           struct error *e)
{
    char magic[TRACING_DATA_MAGIC_BYTES];
    uint8_t is_big, word_bytes = 0;
    unsigned minor = 0;
    struct buf version = BUF_INIT;
    int bad = trace_cursor_take(c, magic, sizeof(magic));
    bad = bad ? bad : memcmp(magic, TRACING_DATA_MAGIC, sizeof(magic)) != 0 ? -EBADMSG : 0;
    bad = bad ? bad : trace_cursor_text(c, 16, &version);
    bad = bad ? bad : trace_cursor_take(c, &is_big, 1);
    bad = bad ? bad : trace_cursor_take(c, &word_bytes, 1);
    if (!bad && sscanf(buf_str(&version), "0.%u", &minor) != 1) /* of perf; trace-cmd writes "6" */
        minor = (unsigned)strtoul(buf_str(&version), NULL, 10);
    buf_release(&version);
    if (!bad && is_big)
        return wrong_machine(path, "big-endian", e);
    if (!bad && word_bytes != 8)
        return wrong_machine(path, "32-bit", e);
    h->version = minor;
    bad = bad ? bad : trace_cursor_u32(c, &h->page_bytes);
    return bad ? error_set(e, -bad, "%s: the formats of its events are damaged or cut", path) : 0;
}

static int read_page_file(struct tracing_data *t, struct trace_cursor *c, const char *name)
{
    char path[64];
    uint64_t bytes;
    struct buf text = BUF_INIT;
    int bad = trace_cursor_text(c, 32, &text);
    bad = bad ? bad : strcmp(buf_str(&text), name) != 0 ? -EBADMSG : trace_cursor_u64(c, &bytes);
    bad = bad ? bad : trace_cursor_bytes(c, bytes, FORMAT_MAX, &text);
    snprintf(path, sizeof(path), "events/%s", name);
    if (!bad)
        tracing_data_add_text(t, path, &text);
    buf_release(&text);
    return bad;
}

int tracing_data_read_pages(struct tracing_data *t, struct trace_cursor *c)
{
    int bad = read_page_file(t, c, "header_page");
    return bad ? bad : read_page_file(t, c, "header_event");
}

/* "name: kmalloc\nID: 658\nformat: ..." */
static int read_formats(struct tracing_data *t, struct trace_cursor *c, const char *group)
{
    uint32_t n;
    char name[128];
    struct buf path = BUF_INIT, text = BUF_INIT;
    int bad = trace_cursor_u32(c, &n);
    bad = !bad && n > EVENTS_MAX ? -EBADMSG : bad;
    for (uint32_t k = 0; !bad && k < n; k++) {
        uint64_t bytes;
        bad = trace_cursor_u64(c, &bytes);
        bad = bad ? bad : trace_cursor_bytes(c, bytes, FORMAT_MAX, &text);
        if (bad || sscanf(buf_str(&text), "name: %127[^\n]", name) != 1)
            continue;
        buf_reset(&path);
        buf_printf(&path, "events/%s/%s/format", group, name);
        tracing_data_add_text(t, buf_str(&path), &text);
    }
    buf_release(&path);
    buf_release(&text);
    return bad;
}

int tracing_data_read_ftrace(struct tracing_data *t, struct trace_cursor *c)
{
    return read_formats(t, c, "ftrace");
}

int tracing_data_read_events(struct tracing_data *t, struct trace_cursor *c)
{
    uint32_t n;
    struct buf group = BUF_INIT;
    int bad = trace_cursor_u32(c, &n);
    bad = !bad && n > EVENTS_MAX ? -EBADMSG : bad;
    for (uint32_t k = 0; !bad && k < n; k++) {
        bad = trace_cursor_text(c, NAME_MAX_, &group);
        bad = bad ? bad : read_formats(t, c, buf_str(&group));
    }
    buf_release(&group);
    return bad;
}

int tracing_data_read_kallsyms(struct tracing_data *t, struct trace_cursor *c)
{
    uint32_t bytes;
    int bad = trace_cursor_u32(c, &bytes);
    return bad ? bad : trace_cursor_bytes(c, bytes, KALLSYMS_MAX, &t->kallsyms);
}

int tracing_data_read_printk(struct tracing_data *t, struct trace_cursor *c)
{
    uint32_t bytes;
    int bad = trace_cursor_u32(c, &bytes);
    (void)t; /* the formats of trace_printk() are not needed */
    return bad ? bad : bytes > PRINTK_MAX ? -EBADMSG : trace_cursor_skip(c, bytes);
}

int tracing_data_read_comms(struct tracing_data *t, struct trace_cursor *c)
{
    uint64_t bytes;
    int bad = trace_cursor_u64(c, &bytes);
    return bad ? bad : trace_cursor_bytes(c, bytes, COMMS_MAX, &t->comms);
}

int tracing_data_read_parts(struct tracing_data *t, unsigned version, struct trace_cursor *c)
{
    int bad = tracing_data_read_pages(t, c);
    bad = bad ? bad : tracing_data_read_ftrace(t, c);
    bad = bad ? bad : tracing_data_read_events(t, c);
    bad = bad ? bad : tracing_data_read_kallsyms(t, c);
    bad = bad ? bad : tracing_data_read_printk(t, c);
    return bad || version < COMMS_SINCE ? bad : tracing_data_read_comms(t, c);
}
