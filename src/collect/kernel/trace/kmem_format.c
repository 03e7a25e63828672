/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/kmem_format.h"

#include <errno.h>
#include <event-parse.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "collect/kernel/trace/record_field.h"

const char *const kmem_format_events[] = {"kmalloc",
                                          "kfree",
                                          "kmem_cache_alloc",
                                          "kmem_cache_free",
                                          "kmalloc_node",
                                          "kmem_cache_alloc_node", /* before 6.1 */
                                          NULL};

#define IDS_MAX 4096u /* the kernel numbers its events from 1 on; modules come later */

const char *const kmem_format_percpu_events[] = {"percpu_alloc_percpu", "percpu_free_percpu", NULL};

enum field { CALL_SITE, ADDRESS, REQUESTED, ALLOCATED, GFP, CACHE, FLAGS, PID, FIELDS };

static const char *const names[FIELDS] = {
    [CALL_SITE] = "call_site", [ADDRESS] = "ptr", [REQUESTED] = "bytes_req", [ALLOCATED] = "bytes_alloc",
    [GFP] = "gfp_flags",       [CACHE] = "name",  [FLAGS] = "common_flags",  [PID] = "common_pid",
};

struct layout {
    bool known, allocates, is_kmalloc, is_percpu;
    uint32_t least; /* bytes of a record */
    struct record_field fields[FIELDS];
};

struct kmem_format {
    struct record_field type; /* of the id, in every record */
    struct layout by_id[IDS_MAX];
    int stack_id; /* 0: not known */
    struct record_field stack_n, stack_flags;
    uint32_t stack_at;
};

struct kmem_format *kmem_format_new(void)
{
    return mem_alloc(sizeof(struct kmem_format));
}

void kmem_format_free(struct kmem_format *f)
{
    free(f);
}

/* Returns whether the event has such a field, of at most 8 bytes. */
static bool find_place(struct tep_event *event, const char *name, struct record_field *out)
{
    *out = record_field_find(event, name, 8);
    return out->bytes;
}

static bool fill_layout(struct layout *l, struct tep_event *event, const char *name)
{
    *l = (struct layout){.known = true,
                         .allocates = strstr(name, "alloc") != NULL,
                         .is_kmalloc = !strstr(name, "cache"),
                         .is_percpu = !strncmp(name, "percpu", strlen("percpu"))};
    for (enum field k = 0; k < FIELDS; k++) {
        const struct record_field *place = &l->fields[k];
        bool needed = k == ADDRESS || k == FLAGS || k == PID ||
                      (k == CALL_SITE && (l->allocates || !l->is_percpu)) ||
                      (l->allocates && (k == REQUESTED || k == ALLOCATED || k == GFP));
        const char *field = k == REQUESTED && l->is_percpu ? "size" : names[k];
        if (!find_place(event, field, &l->fields[k]) && needed)
            return false;
        l->least = place->at + place->bytes > (int)l->least ? place->at + place->bytes : l->least;
    }
    return true;
}

int kmem_format_add_stack(struct kmem_format *f, const char *text, size_t bytes, struct error *e)
{
    struct tep_handle *tep;
    struct tep_event *event = record_field_parse(&tep, "kernel_stack", text, bytes);
    const struct tep_format_field *callers = event ? tep_find_any_field(event, "caller") : NULL;
    bool fits = callers && callers->elementsize == 8 && callers->offset >= 0 &&
                find_place(event, "size", &f->stack_n) && find_place(event, "common_flags", &f->stack_flags);
    f->stack_id = fits ? event->id : 0;
    f->stack_at = fits ? (uint32_t)callers->offset : 0;
    tep_free(tep);
    return fits ? 0
                : error_set(e, EPROTO, "the format of the kernel's event ftrace:kernel_stack is not known");
}

int kmem_format_add(struct kmem_format *f, const char *name, const char *text, size_t bytes, struct error *e)
{
    struct tep_handle *tep;
    struct layout layout;
    struct record_field type;
    struct tep_event *event = record_field_parse(&tep, name, text, bytes);
    bool fits = event && event->id < (int)IDS_MAX && find_place(event, "common_type", &type) &&
                type.bytes == 2 && fill_layout(&layout, event, name);
    if (fits) {
        f->type = type;
        f->by_id[event->id] = layout;
    }
    tep_free(tep);
    return fits ? 0 : error_set(e, EPROTO, "the format of the kernel's event kmem:%s is not known", name);
}

/* The field holds where the text is in the record, and above 16 bits its length, with the NUL. NULL: it is no text. */
static const char *text_at(const uint8_t *data, uint32_t bytes, struct record_field p)
{
    const uint32_t where = (uint32_t)record_field_value(data, p), at = where & 0xffff, len = where >> 16;
    return p.bytes == 4 && len && at + len <= bytes && !data[at + len - 1] ? (const char *)data + at : NULL;
}

int kmem_format_decode(const struct kmem_format *f, const uint8_t *data, uint32_t bytes,
                       struct kmem_event *out)
{
    if (bytes < f->type.at + 2u)
        return -EBADMSG;
    const uint64_t id = record_field_value(data, f->type);
    const struct layout *l = id < IDS_MAX ? &f->by_id[id] : NULL;
    if (!l || !l->known)
        return 0;
    if (bytes < l->least)
        return -EBADMSG;
    const struct record_field *at = l->fields;
    const uint64_t flags = record_field_value(data, at[FLAGS]);
    const char *cache = l->is_percpu      ? KMEM_FORMAT_PERCPU_CACHE
                        : at[CACHE].bytes ? text_at(data, bytes, at[CACHE])
                                          : "";
    if (!cache)
        return -EBADMSG;
    *out = (struct kmem_event){.kind = l->allocates ? KMEM_EVENT_ALLOC : KMEM_EVENT_FREE,
                               .address = record_field_value(data, at[ADDRESS]),
                               .call_site = record_field_value(data, at[CALL_SITE]),
                               .cache = cache,
                               .is_kmalloc = l->is_kmalloc && !l->is_percpu,
                               .is_percpu = l->is_percpu,
                               .process = KMEM_EVENT_NO_PROCESS,
                               .pid = (int32_t)record_field_value(data, at[PID]),
                               .context = flags & KMEM_FORMAT_CONTEXT};
    if (l->allocates) {
        out->requested_bytes = record_field_value(data, at[REQUESTED]);
        out->allocated_bytes = record_field_value(data, at[ALLOCATED]);
        out->gfp = record_field_value(data, at[GFP]);
    }
    return 1;
}

int kmem_format_stack(const struct kmem_format *f, const uint8_t *data, uint32_t bytes,
                      struct kmem_stack *out)
{
    if (bytes < f->type.at + 2u)
        return -EBADMSG;
    if (!f->stack_id || record_field_value(data, f->type) != (uint64_t)f->stack_id)
        return 0;
    if (bytes < f->stack_at || bytes < (uint32_t)f->stack_n.at + f->stack_n.bytes)
        return -EBADMSG;
    const uint64_t n = record_field_value(data, f->stack_n), room = (bytes - f->stack_at) / 8;
    *out = (struct kmem_stack){.callers = data + f->stack_at,
                               .n = (uint32_t)(n < room ? n : room),
                               .context = record_field_value(data, f->stack_flags) & KMEM_FORMAT_CONTEXT};
    return 1;
}
