/* SPDX-License-Identifier: BSD-2-Clause */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "trace_event_lttng.h"
