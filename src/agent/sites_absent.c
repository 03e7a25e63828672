/* SPDX-License-Identifier: BSD-2-Clause */
/* Defines for liballium-agent.so, which has no accounts of call sites, the variables that sites/ defines otherwise. */
#include "agent/sites_link.h"

const struct sites *const sites;
uint32_t sites_on;

__thread struct thread thread_self __attribute__((tls_model("initial-exec")));
