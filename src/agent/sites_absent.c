/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent without accounts of call sites: liballium-agent.so. It takes the place of the folder sites/. */
#include "agent/sites_link.h"

const struct sites *const sites;
uint32_t sites_on;

__thread struct thread thread_self __attribute__((tls_model("initial-exec")));
