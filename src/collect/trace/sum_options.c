/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/sum_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collect/trace/agent_events.h"
#include "collect/trace/kernel_event_classes.h"
#include "model/trace/trace_event.h"
#include "sum/sum_layout.h"

_Static_assert(SUM_SPEC_BY_MAX == SUM_BY_MAX, "keys have room for all fields");

/* What agents know of a field of a key; '-': the tool knows it; 0: there is no such field. */
static char letter_of(const char *field)
{
    static const struct {
        const char *name;
        char letter;
    } letters[] = {{"site", 'a'}, {"size", 's'}, {"thread", 't'}, {"cpu", 'c'}, {"event", '-'}, {"pid", '-'}};
    for (size_t i = 0; i < sizeof(letters) / sizeof(*letters); i++)
        if (!strcmp(letters[i].name, field))
            return letters[i].letter;
    return 0;
}

static bool has_size(const struct sum_spec *spec)
{
    return strcmp(spec->event, "free") != 0;
}

/* Returns a bit for each event. */
static uint64_t events_of(const struct sum_spec *spec)
{
    uint32_t n;
    uint64_t bits = 0;
    const struct event_class *classes = agent_events(&n);
    for (uint32_t i = 0; i < n; i++)
        if (classes[i].id < 64 && sum_spec_has(spec, trace_event_name(&classes[i])))
            bits |= UINT64_C(1) << classes[i].id;
    return bits;
}

/* A line that says which fields there are instead. */
static int no_field(const struct event_class *c, const char *field, bool is_value, struct error *e)
{
    struct buf names = BUF_INIT;
    const char *between = "";
    for (uint32_t i = 0; i < c->n_fields; i++) {
        if (is_value && c->fields[i].type == EVENT_TEXT)
            continue;
        buf_printf(&names, "%s%s", between, c->fields[i].name);
        between = ", ";
    }
    const int bad =
        error_set(e, EINVAL, "%s has no field %s%s: use %s%s", c->name, field, is_value ? " to add up" : "",
                  is_value ? "" : "thread, cpu, event, ", buf_str(&names));
    buf_release(&names);
    return bad;
}

static int check_kernel(const struct sum_spec *spec, struct error *e)
{
    uint32_t group, at;
    const struct event_class *c = kernel_event_class(spec->event, &group);
    if (!c)
        return error_set(e, EINVAL, "there is no event %s: see EVENTS OF THE KERNEL in allium-trace(1)",
                         spec->event);
    const struct event_field *f = spec->field ? trace_event_class_field(c, spec->field, &at) : NULL;
    if (spec->field && (!f || f->type == EVENT_TEXT))
        return no_field(c, spec->field, true, e);
    for (unsigned i = 0; i < spec->n_by; i++)
        if (strcmp(spec->by[i], "thread") != 0 && strcmp(spec->by[i], "cpu") != 0 &&
            strcmp(spec->by[i], "event") != 0 && !trace_event_class_field(c, spec->by[i], &at))
            return no_field(c, spec->by[i], false, e);
    return 0;
}

/* Returns whether it is the name of a group of the kernel's events, and sets the line. */
static bool is_kernel_group(const char *name, struct error *e)
{
    const char *bad;
    uint32_t n;
    const uint32_t group = kernel_event_groups(name, &bad);
    if (!group)
        return false;
    struct buf names = BUF_INIT;
    struct event_class *classes = kernel_event_classes_of(group, &n);
    for (uint32_t i = 0; i < n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", classes[i].name);
    error_set(e, EINVAL, "%s is a group of events of the kernel: use one of %s", name, buf_str(&names));
    buf_release(&names);
    free(classes);
    return true;
}

int sum_options_check(const struct sum_spec *spec, struct error *e)
{
    static const char *const events[] = {"malloc", "calloc", "memalign", "realloc", "free", "alloc"};
    if (sum_spec_is_kernel(spec))
        return check_kernel(spec, e);
    if (is_kernel_group(spec->event, e))
        return -EINVAL;
    bool known = sum_spec_is_user(spec);
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        known |= !strcmp(events[i], spec->event);
    if (!known)
        return error_set(
            e, EINVAL,
            "there is no event %s: use malloc, calloc, memalign, realloc, free, alloc (all but free), "
            "kernel:NAME or PROVIDER:NAME",
            spec->event);
    if (sum_spec_is_user(spec))
        return 0;
    if (spec->field && (strcmp(spec->field, "size") != 0 || !has_size(spec)))
        return error_set(e, EINVAL, "%s has no field %s to add up: use %s", spec->event, spec->field,
                         has_size(spec) ? "size" : "free alone");
    for (unsigned i = 0; i < spec->n_by; i++)
        if (!letter_of(spec->by[i]) || (!strcmp(spec->by[i], "size") && !has_size(spec)))
            return error_set(e, EINVAL, "%s has no field %s: use site, %sthread, cpu, pid or event",
                             spec->event, spec->by[i], has_size(spec) ? "size, " : "");
    return 0;
}

void sum_options_add(const struct sum_spec *spec, struct buf *out)
{
    if (sum_spec_is_user(spec)) {
        buf_printf(out, "%s,=%s", spec->event, spec->field ? spec->field : "");
        for (unsigned i = 0; i < spec->n_by; i++)
            buf_printf(out, ";%s", spec->by[i]);
        return;
    }
    buf_printf(out, ",sum=%" PRIu64 ":%c:", events_of(spec), spec->field ? 's' : '-');
    for (unsigned i = 0; i < spec->n_by; i++)
        buf_addch(out, letter_of(spec->by[i]));
}
