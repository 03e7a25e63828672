/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PERF_PROGRAMS_H
#define SYS_PERF_PROGRAMS_H

/*
 * Programs of perf's software events (SEC("perf_event")): the kernel counts such an event itself, and the program runs
 * at each one.
 *
 * Runs in: the tool.
 */

#include "sys/session.h"

/**
 * Attaches `p` to each event PERF_COUNT_SW_* of that number, on each CPU that is online; the links are the session's. 0
 * or -errno. A CPU that comes online later is not heard.
 */
int perf_attach(struct sys_session *s, struct bpf_program *p, uint32_t software_event);

#endif
