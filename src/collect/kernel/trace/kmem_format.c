/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/kmem_format.h"

#include <errno.h>
#include <event-parse.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *const kmem_format_events[] = {"kmalloc",
                                          "kfree",
                                          "kmem_cache_alloc",
                                          "kmem_cache_free",
                                          "kmalloc_node",
                                          "kmem_cache_alloc_node", /* before 6.1 */
                                          NULL};

/* Bits of common_flags in a record: it came in an interrupt handler, a softirq, or an NMI. */
#define CONTEXT (0x08u | 0x10u | 0x40u)

#define IDS_MAX 4096u /* the kernel numbers its events from 1 on; modules come later */

enum field { CALL_SITE, ADDRESS, REQUESTED, ALLOCATED, GFP, CACHE, FLAGS, PID, FIELDS };

static const char *const names[FIELDS] = {
    [CALL_SITE] = "call_site", [ADDRESS] = "ptr", [REQUESTED] = "bytes_req", [ALLOCATED] = "bytes_alloc",
    [GFP] = "gfp_flags",       [CACHE] = "name",  [FLAGS] = "common_flags",  [PID] = "common_pid",
};

struct place {
    uint16_t at, bytes; /* bytes 0: the event has no such field */
};

struct layout {
    bool known, allocates, is_kmalloc;
    uint32_t least; /* bytes of a record */
    struct place fields[FIELDS];
};

struct kmem_format {
    struct place type; /* of the id, in every record */
    struct layout by_id[IDS_MAX];
    int stack_id; /* 0: not known */
    struct place stack_n, stack_flags;
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
static bool find_place(struct tep_event *event, const char *name, struct place *out)
{
    const struct tep_format_field *field = tep_find_any_field(event, name);
    bool fits =
        field && field->offset >= 0 && field->offset <= UINT16_MAX && field->size > 0 && field->size <= 8;
    *out = fits ? (struct place){(uint16_t)field->offset, (uint16_t)field->size} : (struct place){0, 0};
    return fits;
}

static bool fill_layout(struct layout *l, struct tep_event *event, const char *name)
{
    *l = (struct layout){
        .known = true, .allocates = strstr(name, "alloc") != NULL, .is_kmalloc = !strstr(name, "cache")};
    for (enum field k = 0; k < FIELDS; k++) {
        const struct place *place = &l->fields[k];
        bool needed = k == CALL_SITE || k == ADDRESS || k == FLAGS || k == PID ||
                      (l->allocates && (k == REQUESTED || k == ALLOCATED || k == GFP));
        if (!find_place(event, names[k], &l->fields[k]) && needed)
            return false;
        l->least = place->at + place->bytes > (int)l->least ? place->at + place->bytes : l->least;
    }
    return true;
}

int kmem_format_add_stack(struct kmem_format *f, const char *text, size_t bytes, struct error *e)
{
    struct tep_handle *tep = tep_alloc();
    tep_set_loglevel(TEP_LOG_NONE);
    if (tep)
        tep_parse_event(tep, text, bytes, "ftrace");
    struct tep_event *event = tep ? tep_find_event_by_name(tep, "ftrace", "kernel_stack") : NULL;
    const struct tep_format_field *callers = event ? tep_find_any_field(event, "caller") : NULL;
    bool fits = callers && event->id > 0 && callers->elementsize == 8 && callers->offset >= 0 &&
                find_place(event, "size", &f->stack_n) && find_place(event, "common_flags", &f->stack_flags);
    f->stack_id = fits ? event->id : 0;
    f->stack_at = fits ? (uint32_t)callers->offset : 0;
    tep_free(tep);
    return fits ? 0
                : error_set(e, EPROTO, "the format of the kernel's event ftrace:kernel_stack is not known");
}

int kmem_format_add(struct kmem_format *f, const char *name, const char *text, size_t bytes, struct error *e)
{
    struct tep_handle *tep = tep_alloc();
    struct layout layout;
    struct place type;
    if (!tep)
        return error_set(e, ENOMEM, "no memory to read the format of kmem:%s", name);
    tep_set_loglevel(TEP_LOG_NONE);
    /* The last part of the text, which says how to print a record, may be one that the library does not know. */
    tep_parse_event(tep, text, bytes, "kmem");
    struct tep_event *event = tep_find_event_by_name(tep, "kmem", name);
    bool fits = event && event->id > 0 && event->id < (int)IDS_MAX &&
                find_place(event, "common_type", &type) && type.bytes == 2 &&
                fill_layout(&layout, event, name);
    if (fits) {
        f->type = type;
        f->by_id[event->id] = layout;
    }
    tep_free(tep);
    return fits ? 0 : error_set(e, EPROTO, "the format of the kernel's event kmem:%s is not known", name);
}

static uint64_t value_at(const uint8_t *data, struct place p)
{
    uint64_t value = 0; /* little-endian, as the trace of this machine is */
    if (p.bytes == 8)
        memcpy(&value, data + p.at, 8);
    else if (p.bytes == 4)
        memcpy(&value, data + p.at, 4);
    else
        memcpy(&value, data + p.at, p.bytes);
    return value;
}

/* The field holds where the text is in the record, and above 16 bits its length, with the NUL. NULL: it is no text. */
static const char *text_at(const uint8_t *data, uint32_t bytes, struct place p)
{
    const uint32_t where = (uint32_t)value_at(data, p), at = where & 0xffff, len = where >> 16;
    return p.bytes == 4 && len && at + len <= bytes && !data[at + len - 1] ? (const char *)data + at : NULL;
}

int kmem_format_decode(const struct kmem_format *f, const uint8_t *data, uint32_t bytes,
                       struct kmem_event *out)
{
    if (bytes < f->type.at + 2u)
        return -EBADMSG;
    const uint64_t id = value_at(data, f->type);
    const struct layout *l = id < IDS_MAX ? &f->by_id[id] : NULL;
    if (!l || !l->known)
        return 0;
    if (bytes < l->least)
        return -EBADMSG;
    const struct place *at = l->fields;
    const uint64_t flags = value_at(data, at[FLAGS]);
    const char *cache = at[CACHE].bytes ? text_at(data, bytes, at[CACHE]) : "";
    if (!cache)
        return -EBADMSG;
    *out = (struct kmem_event){.kind = l->allocates ? KMEM_EVENT_ALLOC : KMEM_EVENT_FREE,
                               .address = value_at(data, at[ADDRESS]),
                               .call_site = value_at(data, at[CALL_SITE]),
                               .cache = cache,
                               .is_kmalloc = l->is_kmalloc,
                               .process = KMEM_EVENT_NO_PROCESS,
                               .pid = (int32_t)value_at(data, at[PID]),
                               .context = flags & CONTEXT};
    if (l->allocates) {
        out->requested_bytes = value_at(data, at[REQUESTED]);
        out->allocated_bytes = value_at(data, at[ALLOCATED]);
        out->gfp = value_at(data, at[GFP]);
    }
    return 1;
}

int kmem_format_stack(const struct kmem_format *f, const uint8_t *data, uint32_t bytes,
                      struct kmem_stack *out)
{
    if (bytes < f->type.at + 2u)
        return -EBADMSG;
    if (!f->stack_id || value_at(data, f->type) != (uint64_t)f->stack_id)
        return 0;
    if (bytes < f->stack_at || bytes < (uint32_t)f->stack_n.at + f->stack_n.bytes)
        return -EBADMSG;
    const uint64_t n = value_at(data, f->stack_n), room = (bytes - f->stack_at) / 8;
    *out = (struct kmem_stack){.callers = data + f->stack_at,
                               .n = (uint32_t)(n < room ? n : room),
                               .context = value_at(data, f->stack_flags) & CONTEXT};
    return 1;
}
