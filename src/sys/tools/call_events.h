/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TOOLS_CALL_EVENTS_H
#define SYS_TOOLS_CALL_EVENTS_H

/* For tools whose programs include bpf/call.bpf.h. */

#include "sys/session.h"

/** Counts the calls that have not ended, for a tool's count_rest(). */
void call_events_count_rest(struct sys_session *s);

#endif
