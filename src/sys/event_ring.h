/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_EVENT_RING_H
#define SYS_EVENT_RING_H

/*
 * The reader of the ring of events. It sleeps until there is a record, waits a moment for more (for those for
 * which the kernel sends no wakeup), reads all, and sleeps again. No timer runs while nothing happens.
 */

#include "sys/session.h"

/** For a tool without events: poll_fd only. Returns 0, or -errno with a line. */
int event_ring_open(struct sys_session *s, struct error *e);
void event_ring_close(struct sys_session *s);

#endif
