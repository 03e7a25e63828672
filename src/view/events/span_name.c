/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/events/span_name.h"

#include <string.h>

const char *span_name(const struct span *s, const struct trace_event *end)
{
    switch (s->role->kind) {
    case SPAN_FAULT:
        return "page fault";
    case SPAN_OFF_CPU:
        return "off CPU";
    case SPAN_MAPS:
        return end ? end->class->name + strlen("kernel:") : s->role->name;
    case SPAN_FUNCTION:
        return s->role->name + strlen("function:");
    default:
        return s->role->name;
    }
}
