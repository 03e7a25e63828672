/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_EVENT_RING_H
#define SYS_EVENT_RING_H

/*
 * The reader's side of the ring of events. It sleeps until there is a record, lets others gather for a moment (for
 * those the kernel does not wake it), reads all, and sleeps again: no timer runs while nothing happens.
 *
 * Runs in: the tool.
 */

#include "sys/session.h"

/** Of a tool without events: poll_fd only. 0 or -errno with a line. */
int event_ring_open(struct sys_session *s, struct error *e);
void event_ring_close(struct sys_session *s);

#endif
