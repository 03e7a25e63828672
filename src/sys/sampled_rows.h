/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_SAMPLED_ROWS_H
#define SYS_SAMPLED_ROWS_H

/*
 * Rows by user stack, made from samples (--sample). In the kernel each sampled event is a row of its own,
 * because stacks can be compared only here. Rows of one stack are merged, and each sample is weighted by the
 * number of events that it represents.
 *
 * Runs in: the tool. Owns: the sums, until sampled_rows_free().
 */

#include "sys/session.h"

/**
 * Returns a copy of the tool with three more columns: the number of samples in a row, and the 95 % interval.
 * The caller frees it with free().
 */
struct sys_tool *sampled_tool_new(const struct sys_tool *tool);
void sampled_tool_free(struct sys_tool *tool);

struct sampled_rows;
void sampled_rows_free(struct sampled_rows *r);

/** Returns whether rows are made from samples. */
bool sampled_rows_are(const struct sys_session *s);
/** Adds a row from the kernel. */
void sampled_rows_add(struct sys_session *s, const void *key, const void *value);
/** Makes rows from what was added, and begins anew. */
void sampled_rows_take(struct sys_session *s, struct table *t);

#endif
