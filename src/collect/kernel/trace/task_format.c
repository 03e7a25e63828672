/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/task_format.h"

#include <errno.h>
#include <event-parse.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "collect/kernel/trace/record_field.h"

const char *const task_format_events[TASK_EVENT_KINDS] = {
    [TASK_RENAMED] = "task/task_rename",
    [TASK_BEGAN] = "task/task_newtask",
    [TASK_MOVED] = "cgroup/cgroup_attach_task",
    [TASK_MARKED] = "ftrace/print",
};

/* clone(2): the new thread belongs to the process of its creator. */
#define CLONE_THREAD UINT64_C(0x10000)

/* Of a text that lies elsewhere in the record, the field says where. */
#define TEXT_BYTES_MAX 4096

struct task_format {
    struct {
        uint16_t id; /* 0: not known */
        bool is_elsewhere;
        struct record_field tid, text, creator, flags, hierarchy;
        uint32_t least; /* bytes of a record */
    } kinds[TASK_EVENT_KINDS];
};

struct task_format *task_format_new(void)
{
    return mem_alloc(sizeof(struct task_format));
}

void task_format_free(struct task_format *f)
{
    free(f);
}

int task_format_add(struct task_format *f, enum task_event_kind kind, const char *text, size_t bytes,
                    struct error *e)
{
    static const char *const texts[TASK_EVENT_KINDS] = {"newcomm", "comm", "dst_path", NULL};
    const char *name = strchr(task_format_events[kind], '/') + 1;
    struct tep_handle *tep;
    struct tep_event *event = record_field_parse(&tep, name, text, bytes);
    if (event) {
        const struct tep_format_field *field = texts[kind] ? tep_find_any_field(event, texts[kind]) : NULL;
        f->kinds[kind].id = (uint16_t)event->id;
        f->kinds[kind].is_elsewhere = field && field->flags & TEP_FIELD_IS_DYNAMIC;
        f->kinds[kind].tid = record_field_find(event, kind == TASK_MARKED ? "common_pid" : "pid", 4);
        if (kind == TASK_RENAMED &&
            !f->kinds[kind].tid.bytes) /* Linux 6.14 to 6.19: a thread renames itself */
            f->kinds[kind].tid = record_field_find(event, "common_pid", 4);
        f->kinds[kind].text = record_field_find(event, texts[kind], 256);
        f->kinds[kind].creator = record_field_find(event, "common_pid", 4);
        f->kinds[kind].flags = record_field_find(event, kind == TASK_BEGAN ? "clone_flags" : NULL, 8);
        f->kinds[kind].hierarchy = record_field_find(event, kind == TASK_MOVED ? "dst_root" : NULL, 4);
        const uint32_t ends[] = {record_field_end(f->kinds[kind].tid), record_field_end(f->kinds[kind].text),
                                 record_field_end(f->kinds[kind].creator),
                                 record_field_end(f->kinds[kind].flags),
                                 record_field_end(f->kinds[kind].hierarchy)};
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
            f->kinds[kind].least = ends[i] > f->kinds[kind].least ? ends[i] : f->kinds[kind].least;
        if (!f->kinds[kind].tid.bytes || (texts[kind] && !f->kinds[kind].text.bytes))
            f->kinds[kind].id = 0;
    }
    tep_free(tep);
    return f->kinds[kind].id ? 0
                             : error_set(e, EPROTO, "the format of the kernel's event %s is not known",
                                         task_format_events[kind]);
}

/* The field holds where the text is in the record, and above 16 bits its length, with the NUL. */
static bool find_text(const uint8_t *data, uint32_t bytes, struct record_field p, struct task_event *out)
{
    const uint32_t where = (uint32_t)record_field_value(data, p), at = where & 0xffff, len = where >> 16;
    if (p.bytes != 4 || at > bytes || len > bytes - at || len > TEXT_BYTES_MAX)
        return false;
    out->text = (const char *)data + at;
    out->text_bytes = len;
    return true;
}

int task_format_decode(const struct task_format *f, const uint8_t *data, uint32_t bytes,
                       struct task_event *out)
{
    if (bytes < 2)
        return -EBADMSG;
    const uint16_t id = (uint16_t)(data[0] | data[1] << 8); /* common_type, in every record */
    for (int k = 0; k < TASK_EVENT_KINDS; k++) {
        if (!id || f->kinds[k].id != id)
            continue;
        if (bytes < f->kinds[k].least)
            return -EBADMSG;
        *out = (struct task_event){.kind = (enum task_event_kind)k,
                                   .tid = (int32_t)record_field_value(data, f->kinds[k].tid),
                                   .creator = (int32_t)record_field_value(data, f->kinds[k].creator),
                                   .is_thread = record_field_value(data, f->kinds[k].flags) & CLONE_THREAD,
                                   .hierarchy = (int32_t)record_field_value(data, f->kinds[k].hierarchy)};
        out->text = (const char *)data + f->kinds[k].text.at;
        out->text_bytes = f->kinds[k].text.bytes;
        if (f->kinds[k].is_elsewhere && !find_text(data, bytes, f->kinds[k].text, out))
            return -EBADMSG;
        return 1;
    }
    return 0;
}
