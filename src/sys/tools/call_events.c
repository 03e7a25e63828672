/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/call_events.h"

#include "bpf/call.h"

static void count_one(void *arg, const void *key, const void *value)
{
    const struct call_begun *c = value;
    uint64_t *n = arg;
    (void)key;
    *n += c->began_ns != 0;
}

void call_events_count_rest(struct sys_session *s)
{
    sys_each(s, "calls", count_one, &s->counted[CALL_UNDER_WAY]);
}
