/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PERF_PROGRAMS_H
#define SYS_PERF_PROGRAMS_H

/*
 * Programs for perf's software events (SEC("perf_event")): the kernel counts such an event, and runs the
 * program at each one.
 */

#include "sys/session.h"

/**
 * Attaches `p` to the event PERF_COUNT_SW_* of that number, on each online CPU; the session owns the links.
 * Returns 0 or -errno. A CPU that comes online later is not observed.
 */
int perf_attach(struct sys_session *s, struct bpf_program *p, uint32_t software_event);

#endif
