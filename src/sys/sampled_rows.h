/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_SAMPLED_ROWS_H
#define SYS_SAMPLED_ROWS_H

/*
 * Rows by user stack that are made of samples (--sample). In the kernel each sampled event has a row of its own, since
 * stacks are told apart only here: those of one stack are put together, and each counts for so many events as it stands
 * for.
 *
 * Runs in: the tool. Owns: sums, until sampled_rows_free().
 */

#include "sys/session.h"

/**
 * A copy of the tool with three columns more: how many samples a row is made of, and the 95 % interval. The caller's,
 * free().
 */
struct sys_tool *sampled_tool_new(const struct sys_tool *tool);
void sampled_tool_free(struct sys_tool *tool);

struct sampled_rows;
void sampled_rows_free(struct sampled_rows *r);

/** Are rows made of samples? */
bool sampled_rows_are(const struct sys_session *s);
/** Adds a row of the kernel's. */
void sampled_rows_add(struct sys_session *s, const void *key, const void *value);
/** Makes rows of what was added, and begins anew. */
void sampled_rows_take(struct sys_session *s, struct table *t);

#endif
