/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/recorder_names.h"

#include "sys/resolver.h"

/* Code that has no symbol any more, or that the kernel does not show; its address is stored nowhere. */
#define UNKNOWN_NAME "[unknown]"

/* What stands for the name of a call that has none in the kernel: our own, or unknown. NULL: it has one. */
static const char *name_instead(struct recorder_names *r, uint64_t call)
{
    if (call == RECORDER_OWN_SITE)
        return RECORDER_OWN_NAME;
    return resolver_kernel_number(r->names, call) ? NULL : UNKNOWN_NAME;
}

static void add_name(struct recorder_names *r, struct buf *b, uint64_t call,
                     void (*add)(struct names *n, struct buf *b, uint64_t address))
{
    const char *instead = name_instead(r, call);
    if (instead)
        buf_addstr(b, instead);
    else
        add(r->names, b, call);
}

static void add_call(void *arg, struct buf *b, uint64_t call)
{
    add_name(arg, b, call, resolver_add_kernel_call);
}

static void add_function(void *arg, struct buf *b, uint64_t call)
{
    add_name(arg, b, call, resolver_add_kernel_function);
}

static uint64_t number(void *arg, uint64_t call)
{
    struct recorder_names *r = arg;
    return call == RECORDER_OWN_SITE ? 0 : resolver_kernel_number(r->names, call);
}

static void add_file(void *arg, struct buf *b, uint64_t call)
{
    struct recorder_names *r = arg;
    const char *instead = name_instead(r, call);
    if (instead)
        buf_printf(b, UNKNOWN_NAME "%s%s", call == RECORDER_OWN_SITE ? " " : "",
                   call == RECORDER_OWN_SITE ? instead : "");
    else
        resolver_add_kernel_file(r->names, b, call);
}

static bool frames(void *arg, uint64_t call, struct symbol_frames *out)
{
    struct recorder_names *r = arg;
    return call != RECORDER_OWN_SITE && resolver_kernel_frames(r->names, call, out);
}

static const char *frame_file(void *arg, const struct symbol_frame *f)
{
    const struct recorder_names *r = arg;
    return resolver_kernel_frame_file(r->names, f);
}

static void add_gfp(void *arg, struct buf *b, uint64_t gfp)
{
    struct recorder_names *r = arg;
    resolver_add_gfp(r->names, b, gfp);
}

static const char *migrate_type(void *arg, uint32_t type)
{
    struct recorder_names *r = arg;
    if (!r->has_types)
        kernel_enums_load(&r->types, "migratetype", "MIGRATE_");
    r->has_types = true;
    return type < KERNEL_ENUMS_VALUES_MAX ? r->types.names[type] : NULL;
}

static const char *cgroup(void *arg, int32_t process)
{
    const struct recorder_names *r = arg;
    return tasks_cgroup(r->tasks, process);
}

struct kernel_code_names recorder_names_of(struct recorder_names *r, bool source)
{
    struct kernel_code_names n = {.arg = r,
                                  .add_call = add_call,
                                  .add_function = add_function,
                                  .number = number,
                                  .add_gfp = add_gfp,
                                  .migrate_type = migrate_type,
                                  .cgroup = cgroup};
    if (source) {
        n.add_file = add_file;
        n.frames = frames;
        n.frame_file = frame_file;
    }
    return n;
}

void recorder_names_release(struct recorder_names *r)
{
    resolver_free(r->names);
    if (r->has_types)
        kernel_enums_release(&r->types);
}
