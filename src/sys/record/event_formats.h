/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_EVENT_FORMATS_H
#define SYS_EVENT_FORMATS_H

/*
 * Gives the event formats that a trace contains to the decoder of the trace's records.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "base/error.h"
#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/page_format.h"
#include "collect/kernel/trace/task_format.h"
#include "collect/kernel/trace/tracing_data.h"
#include "sys/record/import/kernel_import.h"

struct event_formats_target {
    struct kmem_format *objects;
    struct page_format *pages;
    struct task_format *tasks; /* NULL: they are not wanted */
};

/** For a line: the trace has no event that is read. */
#define EVENT_FORMATS_NONE                                                                                   \
    "has none of the events kmem:kmalloc, kmem:kfree ..., kmem:mm_page_alloc, percpu:..."

/**
 * Adds the formats that there are, and tells the import of pages and of the names of flags. Events of pages, of percpu
 * memory and of threads are left out and counted if their form is not known, as that of old kernels. Returns 0,
 * -ENODATA without a line if there is no event of memory, or another -errno with a line.
 */
int event_formats_add(const struct event_formats_target *to, const struct tracing_data *from,
                      struct kernel_import *import, struct error *e);

#endif
