/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACING_DATA_H
#define COLLECT_TRACING_DATA_H

/*
 * What a file says of the traced kernel's formats: the beginning of trace.dat, which perf.data holds, too. See
 * trace-cmd.dat.v6(5). A file of a machine of another byte order or another size of addresses is refused.
 *
 * Runs in: the tool. Threads: one. Owns: its texts, until tracing_data_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "collect/kernel/trace/trace_cursor.h"

struct tracing_data {
    /* "events/header_page", "events/kmem/kmalloc/format", as the files of tracefs are called */
    struct map index;
    struct VEC(struct buf) texts;
    struct buf kallsyms; /* empty: not there */
    struct buf comms;    /* as saved_cmdlines: a thread, a blank and its name in each line */
};

/** The first bytes of such data. */
#define TRACING_DATA_MAGIC       "\x17\x08\x44tracing"
#define TRACING_DATA_MAGIC_BYTES 10u

/** The parts, each of which can be read by itself: in version 7 each is a section. `c` is behind it afterwards. */
struct tracing_data_head {
    unsigned version;
    uint32_t page_bytes;
};
/** Reads the magic, the version and what the machine is like. Returns 0, or -errno with a line, which begins with
 * `path`. */
int tracing_data_read_head(struct tracing_data_head *h, struct trace_cursor *c, const char *path,
                           struct error *e);
/** Each returns 0, or -EBADMSG or another -errno: the file is cut or damaged. */
int tracing_data_read_pages(struct tracing_data *t, struct trace_cursor *c);
int tracing_data_read_ftrace(struct tracing_data *t, struct trace_cursor *c);
int tracing_data_read_events(struct tracing_data *t, struct trace_cursor *c);
int tracing_data_read_kallsyms(struct tracing_data *t, struct trace_cursor *c);
int tracing_data_read_printk(struct tracing_data *t, struct trace_cursor *c);
int tracing_data_read_comms(struct tracing_data *t, struct trace_cursor *c);
/** Reads all of them, in this order; `comms` only of a version that has them. Returns as above. */
int tracing_data_read_parts(struct tracing_data *t, unsigned version, struct trace_cursor *c);
void tracing_data_release(struct tracing_data *t);

/** Takes over a text, which is empty then. The first one of a name counts. */
void tracing_data_add_text(struct tracing_data *t, const char *path, struct buf *text);
/** Returns the text of a file of tracefs, or NULL. */
const struct buf *tracing_data_text(const struct tracing_data *t, const char *path);

#endif
