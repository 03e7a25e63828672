/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces the folder sites/ in liballium-agent.so, the agent without accounts of call sites. */
#include "agent/sites_link.h"

const struct sites *const sites;
uint32_t sites_on;

__thread struct thread thread_self __attribute__((tls_model("initial-exec")));
