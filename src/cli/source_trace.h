/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SOURCE_TRACE_H
#define CLI_SOURCE_TRACE_H

/*
 * A trace as a SOURCE (cli/source.h): the folder that `allium trace` wrote. Its events give the figures, and the
 * recording in the folder (profile.allium) the modules and names.
 *
 * Runs in: the tool.
 */

#include "base/error.h"
#include "model/accounts/accounts.h"
#include "model/profile/profile.h"

/** The recording in the folder of a trace. */
#define SOURCE_TRACE_RECORDING "profile.allium"

/**
 * Reads the profile at the time "10m" since the beginning; NULL: at the end. "10m..20m", "10m.." and "..20m" are
 * spans, see trace_profile_read(). Returns 0, or -errno with a line. The
 * caller frees *p, which is NULL on failure.
 */
int source_trace_read(struct profile **p, const char *folder, const char *time, struct error *e);

struct object_listener;
/**
 * Reads the events once more, and tells the listener of each object's life. Cells have the numbers that they have in
 * the profile of source_trace_read(). Returns 0, or -errno with a line.
 */
int source_trace_lives(const char *folder, const char *time, const struct object_listener *listener,
                       struct error *e);

/**
 * Adds the accounts of call sites, made from the events of that time, to `a`. Returns 0, or -errno with a line.
 */
int source_trace_accounts(struct accounts *a, struct alloc_texts *texts, const char *folder, const char *time,
                          struct error *e);

struct trace_span;
/** Reads the span of a time as source_trace_read() takes it. Returns 0, or -errno with a line. */
int source_trace_span(struct trace_span *span, const char *folder, const char *time, struct error *e);

/** Reads what a trace's recording knows of images, modules and names, without figures. As source_trace_read(). */
int source_trace_names(struct profile **p, const char *folder, struct error *e);

#endif
