/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_LIVE_OBJECTS_H
#define SYS_LIVE_OBJECTS_H

/*
 * What is live, by row (--live): a tool's programs keep each object in a map until it is freed, with its row's key;
 * here they are added up whenever rows are made.
 *
 * Runs in: the tool. Threads: one. Owns: the sums, until live_objects_free().
 */

#include "sys/session.h"

struct live;

/**
 * Before the programs are loaded: they follow objects if --live, or its option for how many, is given; else their map
 * gets no room. -EINVAL with a line: an option makes no sense.
 */
int live_objects_ready(struct sys_session *s, struct error *e);
void live_objects_free(struct live *l);

/** Adds up what is live now. */
void live_objects_gather(struct sys_session *s);
/** Fills the columns of the last row of the table, which is that of the key; nothing where no object is followed. */
void live_objects_row(struct sys_session *s, struct table *t, const void *key);
/** Rows of which something is live though nothing happened in them. */
void live_objects_rest(struct sys_session *s, struct table *t);

#endif
