/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PERF_DATA_H
#define COLLECT_PERF_DATA_H

/*
 * A file of `perf record`, or what it has written to a pipe (-o -); compressed (-z) or not. It gives the records in the
 * order of their times. Files of a machine of another byte order or architecture are refused.
 *
 * Runs in: the tool. Threads: one. Owns: everything but the descriptor, until perf_data_close(). Memory: the records
 * that perf wrote in two rounds over all buffers.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/kernel/trace/perf_head.h"
#include "collect/kernel/trace/tracing_data.h"

struct perf_data;

/** Reads the head of the file. Returns 0, or -errno with a line, which begins with `path`. */
int perf_data_open(struct perf_data **out, int fd, uint64_t bytes, const char *path, struct error *e);
void perf_data_close(struct perf_data *p); /* NULL is allowed */

/** Takes an item, which is valid during the call. Returns 0, or anything else to end the reading. */
typedef int perf_data_fn(void *arg, const struct perf_item *item);
/** Gives all items. Returns 0, what `f` returned, or -errno with a line: the file is cut or damaged, after what was
 * given before. */
int perf_data_read(struct perf_data *p, perf_data_fn *f, void *arg, struct error *e);

/** The formats of the events; complete when the first sample is given. */
const struct tracing_data *perf_data_formats(const struct perf_data *p);
const struct perf_data_about *perf_data_about(const struct perf_data *p);

#endif
