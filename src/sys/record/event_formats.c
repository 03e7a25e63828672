/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/event_formats.h"

#include <errno.h>
#include <stdio.h>

struct add {
    const struct event_formats_target *to;
    const struct tracing_data *from;
    struct kernel_import *import;
    bool any; /* an event of memory */
};

static const struct buf *text_of(const struct add *a, const char *group, const char *event)
{
    char path[96];
    snprintf(path, sizeof(path), "events/%s%s%s/format", group, *group ? "/" : "", event);
    return tracing_data_text(a->from, path);
}

/* The names of flags are the same in all formats that have them. */
static void take(struct add *a, const struct buf *text)
{
    a->any = true;
    kernel_import_use_gfp(a->import, buf_str(text));
}

static int add_objects(struct add *a, struct error *e)
{
    int bad = 0;
    for (size_t k = 0; kmem_format_events[k] && !bad; k++) {
        const struct buf *text = text_of(a, "kmem", kmem_format_events[k]);
        bad = text ? kmem_format_add(a->to->objects, kmem_format_events[k], buf_str(text), text->len, e) : 0;
        if (text)
            take(a, text);
    }
    return bad;
}

static void count(struct add *a, const struct buf *text, int bad)
{
    if (bad)
        kernel_import_counts(a->import)->unknown_forms++;
    else
        take(a, text);
}

/* Before Linux 6.0 events of percpu memory did not tell the call, and before 4.2 those of pages no frame. */
static void add_others(struct add *a)
{
    struct error ignored;
    for (size_t k = 0; kmem_format_percpu_events[k]; k++) {
        const char *event = kmem_format_percpu_events[k];
        const struct buf *text = text_of(a, "percpu", event);
        if (text)
            count(a, text, kmem_format_add(a->to->objects, event, buf_str(text), text->len, &ignored));
    }
    for (int k = 0; k < PAGE_EVENT_KINDS; k++) {
        const struct buf *text = text_of(a, "kmem", page_format_events[k]);
        if (!text)
            continue;
        kernel_import_use_pages(a->import);
        count(a, text,
              page_format_add(a->to->pages, (enum page_event_kind)k, buf_str(text), text->len, &ignored));
    }
    for (int k = 0; k < TASK_EVENT_KINDS && a->to->tasks; k++) {
        const struct buf *text = text_of(a, "", task_format_events[k]);
        if (text &&
            task_format_add(a->to->tasks, (enum task_event_kind)k, buf_str(text), text->len, &ignored))
            kernel_import_counts(a->import)->unknown_forms++;
    }
}

int event_formats_add(const struct event_formats_target *to, const struct tracing_data *from,
                      struct kernel_import *import, struct error *e)
{
    struct add a = {to, from, import, false};
    int bad = add_objects(&a, e);
    if (bad)
        return bad;
    add_others(&a);
    return a.any ? 0 : -ENODATA;
}
