/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/kernel/trace/perf_data: whatever a file of perf says, what is given lies in its records,
 * and the reading ends.
 */
#include "require.h"

#include "collect/kernel/trace/perf_data.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t items, sum;
};

/* Touches every byte: the sanitizer says if one is not there. */
static int take(void *arg, const struct perf_item *item)
{
    struct seen *s = arg;
    s->items++;
    for (uint32_t k = 0; item->raw && k < item->raw_bytes; k++)
        s->sum += item->raw[k];
    for (uint64_t k = 0; k < 8 * item->n_callers; k++)
        s->sum += item->callers[k];
    require(item->kind != PERF_ITEM_COMM || item->comm, "a name that is none");
    s->sum += item->comm ? strlen(item->comm) : 0;
    return s->sum == UINT64_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct perf_data *p;
    struct error e = {""};
    struct seen seen = {0, 0};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file in memory");
    int bad = perf_data_open(&p, fd, size, "file", &e);
    require(!bad == !*e.text, "an error without a line, or a line without an error");
    if (!bad) {
        bad = perf_data_read(p, take, &seen, &e);
        require(!bad == !*e.text, "an error without a line, or a line without an error");
        require(perf_data_about(p)->unread <= size && seen.items <= 4096 * (size + 1),
                "more records than bytes");
        tracing_data_text(perf_data_formats(p), "events/kmem/kfree/format");
        perf_data_close(p);
    }
    close(fd);
    return 0;
}
