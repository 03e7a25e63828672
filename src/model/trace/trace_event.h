/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_TRACE_EVENT_H
#define MODEL_TRACE_EVENT_H

/*
 * One event of a trace, as the reader of the trace (collect/trace/event_folder.h) returns it.
 *
 * Runs in: the tool. Pure data.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/sigsafe/event_class.h"

/* Of trace_event.flags (enum ring_flag): the time lies between those of other events, and was not measured. */
#define TRACE_EVENT_INTERPOLATED 4u
#define TRACE_EVENT_NO_CPU       UINT32_MAX /* trace_event.cpu: it is not known */

struct trace_event {
    const struct event_class *class;
    const char *domain; /* "ust" or "kernel" */
    uint64_t time_ns;   /* CLOCK_MONOTONIC */
    uint64_t realtime_ns;
    uint64_t image_id; /* 0: of the kernel */
    pid_t pid;
    uint32_t cpu, thread;
    uint16_t flags; /* enum ring_flag */
    bool doubtful;  /* it happened before an event with an earlier time, or may have (order_doubts.h) */
    const unsigned char *fields; /* event_class_bytes() of them, valid until the next event is read */
};

/** Returns the value of a field of whole numbers that begins there; EVENT_SIGNED and EVENT_ENUM are sign-extended. */
static inline uint64_t trace_event_number(const struct event_field *f, const unsigned char *at)
{
    uint64_t value = 0;
    if (f->bytes > sizeof(value))
        return 0;
    memcpy(&value, at, f->bytes);
    const unsigned unused = 64 - 8 * f->bytes;
    const int is_signed = f->type == EVENT_SIGNED || f->type == EVENT_ENUM;
    return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

/** Returns the value of an EVENT_FLOAT. */
static inline double trace_event_real(const struct event_field *f, const unsigned char *at)
{
    float small;
    double large;
    if (f->bytes == sizeof(small)) {
        memcpy(&small, at, sizeof(small));
        return small;
    }
    memcpy(&large, at, sizeof(large));
    return large;
}

/** Returns the name of an EVENT_ENUM's value; NULL: it has none. */
static inline const char *trace_event_label(const struct event_field *f, int64_t value)
{
    for (uint32_t i = 0; i < f->n_labels; i++)
        if (f->labels[i].value == value)
            return f->labels[i].name;
    return NULL;
}

/** Finds a field of the class by its name. *at: where it begins among the fields. NULL: there is none of that name. */
static inline const struct event_field *trace_event_class_field(const struct event_class *c, const char *name,
                                                                uint32_t *at)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < c->n_fields; i++) {
        const struct event_field *f = &c->fields[i];
        *at = event_field_at(f, end);
        if (!strcmp(f->name, name))
            return f;
        end = *at + f->bytes;
    }
    return NULL;
}

/** The same of an event that has its fields in memory. *at: where the field's value begins. */
static inline const struct event_field *trace_event_field(const struct trace_event *e, const char *name,
                                                          const unsigned char **at)
{
    uint32_t begin = 0;
    const struct event_field *f = trace_event_class_field(e->class, name, &begin);
    if (f)
        *at = e->fields + begin;
    return f;
}

/** Returns the whole number of the field with that name; 0: the event has none. */
static inline uint64_t trace_event_value(const struct trace_event *e, const char *name)
{
    const unsigned char *at;
    const struct event_field *f = trace_event_field(e, name, &at);
    return f ? trace_event_number(f, at) : 0;
}

/** Returns the name without "allium:", which the events of the agent have. */
static inline const char *trace_event_name(const struct event_class *c)
{
    return strncmp(c->name, "allium:", 7) ? c->name : c->name + 7;
}

#endif
