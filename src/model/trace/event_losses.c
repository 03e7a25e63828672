/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/trace/event_losses.h"

#include <string.h>

static struct cpu_loss *cpu_of(struct event_losses *l, const struct lost_stretch *s)
{
    vec_each (struct cpu_loss, c, &l->by_cpu)
        if (c->cpu == s->cpu && !strcmp(c->domain, s->domain))
            return c;
    struct cpu_loss *c = vec_push(&l->by_cpu);
    *c = (struct cpu_loss){.domain = s->domain, .cpu = s->cpu, .last = SIZE_MAX};
    return c;
}

void event_losses_add(struct event_losses *l, const struct lost_stretch *s)
{
    struct cpu_loss *c = cpu_of(l, s);
    struct lost_stretch *before = c->last == SIZE_MAX ? NULL : &l->stretches.at[c->last];
    const uint64_t to_ns = s->to_ns < s->from_ns ? s->from_ns : s->to_ns;
    c->events += s->events;
    if (before && before->to_ns == s->from_ns) {
        before->to_ns = to_ns;
        before->events += s->events;
        return;
    }
    c->last = l->stretches.len;
    struct lost_stretch *added = vec_push(&l->stretches);
    *added = *s;
    added->to_ns = to_ns;
}

void event_losses_release(struct event_losses *l)
{
    vec_release(&l->by_cpu);
    vec_release(&l->stretches);
    *l = (struct event_losses){0};
}
