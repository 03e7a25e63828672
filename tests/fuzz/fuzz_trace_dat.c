/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/kernel/trace/trace_dat, and of trace_reader where it reads kept pages: whatever a file of
 * trace-cmd says, no record reaches beyond its page, and records come in the order of their times or count as late.
 */
#include "require.h"

#include "collect/kernel/trace/trace_saved.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct trace_reader *reader;
    uint64_t before, late, sum;
};

static void take(void *arg, const struct trace_record *r, uint32_t cpu)
{
    struct seen *s = arg;
    struct trace_record other;
    struct trace_peek peek = trace_reader_peek(s->reader);
    s->late += r->time < s->before;
    s->before = r->time;
    for (uint32_t k = 0; k < r->bytes; k++)
        s->sum += r->data[k] + cpu;
    for (unsigned n = 0; n < 4 && trace_peek_next(s->reader, &peek, &other); n++)
        s->sum += other.bytes ? other.data[other.bytes - 1] : 0;
}

static void read_pages(const struct trace_saved *saved)
{
    struct seen seen = {.before = 0};
    const struct buf *layout = tracing_data_text(&saved->formats, "events/header_page");
    if (!layout ||
        trace_reader_open_kept(&seen.reader, buf_str(layout), saved->cpus.at, saved->cpus.len, NULL))
        return;
    int bad = trace_reader_step(seen.reader, true, take, &seen);
    require(bad <= 0 && seen.late == trace_reader_counts(seen.reader)->late,
            "records that are late uncounted");
    trace_reader_close(seen.reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error e = {""};
    struct trace_saved saved;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file in memory");
    int bad = trace_dat_open(&saved, fd, size, "file", &e);
    require(!bad == !*e.text, "an error without a line, or a line without an error");
    require(memchr(saved.clock, '\0', sizeof(saved.clock)), "a clock without an end");
    if (!bad)
        read_pages(&saved);
    trace_saved_release(&saved);
    close(fd);
    return 0;
}
