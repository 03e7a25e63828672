/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/page_format.h"

#include <errno.h>
#include <event-parse.h>
#include <stdlib.h>

#include "base/mem.h"
#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/record_field.h"

const char *const page_format_events[PAGE_EVENT_KINDS] = {
    [PAGE_EVENT_ALLOC] = "mm_page_alloc",
    [PAGE_EVENT_FREE] = "mm_page_free",
    [PAGE_EVENT_FALLBACK] = "mm_page_alloc_extfrag",
};

enum field { FRAME, ORDER, TYPE, GFP, FLAGS, PID, FIELDS };

static const char *const names[PAGE_EVENT_KINDS][FIELDS] = {
    [PAGE_EVENT_ALLOC] = {"pfn", "order", "migratetype", "gfp_flags", "common_flags", "common_pid"},
    [PAGE_EVENT_FREE] = {"pfn", "order", NULL, NULL, "common_flags", "common_pid"},
    [PAGE_EVENT_FALLBACK] = {"pfn", "alloc_order", "alloc_migratetype", NULL, "common_flags", "common_pid"},
};

struct page_format {
    struct {
        uint16_t id;    /* 0: not known */
        uint32_t least; /* bytes of a record */
        struct record_field fields[FIELDS];
    } kinds[PAGE_EVENT_KINDS];
};

struct page_format *page_format_new(void)
{
    return mem_alloc(sizeof(struct page_format));
}

void page_format_free(struct page_format *f)
{
    free(f);
}

int page_format_add(struct page_format *f, enum page_event_kind kind, const char *text, size_t bytes,
                    struct error *e)
{
    struct tep_handle *tep;
    struct tep_event *event = record_field_parse(&tep, page_format_events[kind], text, bytes);
    bool fits = event != NULL;
    for (int k = 0; k < FIELDS && fits; k++) {
        struct record_field *field = &f->kinds[kind].fields[k];
        *field = record_field_find(event, names[kind][k], 8);
        fits = field->bytes || !names[kind][k];
        const uint32_t end = record_field_end(*field);
        f->kinds[kind].least = end > f->kinds[kind].least ? end : f->kinds[kind].least;
    }
    f->kinds[kind].id = fits ? (uint16_t)event->id : 0;
    tep_free(tep);
    return fits ? 0
                : error_set(e, EPROTO, "the format of the kernel's event kmem:%s is not known",
                            page_format_events[kind]);
}

int page_format_decode(const struct page_format *f, const uint8_t *data, uint32_t bytes,
                       struct page_event *out)
{
    if (bytes < 2)
        return -EBADMSG;
    const uint16_t id = (uint16_t)(data[0] | data[1] << 8); /* common_type, in every record */
    for (int k = 0; k < PAGE_EVENT_KINDS; k++) {
        if (!id || f->kinds[k].id != id)
            continue;
        if (bytes < f->kinds[k].least)
            return -EBADMSG;
        const struct record_field *at = f->kinds[k].fields;
        *out = (struct page_event){
            .kind = (enum page_event_kind)k,
            .frame = record_field_value(data, at[FRAME]),
            .order = (uint32_t)record_field_value(data, at[ORDER]),
            .migrate_type =
                k == PAGE_EVENT_FREE ? PAGE_EVENT_NO_TYPE : (uint32_t)record_field_value(data, at[TYPE]),
            .gfp = record_field_value(data, at[GFP]),
            .pid = (int32_t)record_field_value(data, at[PID]),
            .context = record_field_value(data, at[FLAGS]) & KMEM_FORMAT_CONTEXT,
        };
        return 1;
    }
    return 0;
}
