/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/about/attach_places.h"

#include <errno.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>

#include "sys/bpf_object.h"
#include "sys/names/cgroups_gone.h"

/* The first part of a section is how its program is attached, the last part the name of the place. */
static const struct {
    const char *section, *place;
} kinds[] = {
    {"tp_btf/", ""},
    {"raw_tp/", ""},
    {"tp/", ""},
    {"fentry/", "the entry of "},
    {"fexit/", "the return of "},
    {"kprobe/", "the entry of "},
    {"kretprobe/", "the return of "},
    {"uprobe/", "the entry of "},
    {"uretprobe/", "the return of "},
};

static const char *software_event(uint32_t event)
{
    switch (event) {
    case PERF_COUNT_SW_PAGE_FAULTS_MIN:
        return "minor faults of perf";
    case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
        return "major faults of perf";
    default:
        return "an event of perf";
    }
}

static void add_place(struct buf *b, const char *section)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        size_t len = strlen(kinds[i].section);
        if (strncmp(section, kinds[i].section, len) != 0)
            continue;
        const char *slash = strrchr(section + len, '/');
        buf_printf(b, "%s%s", kinds[i].place, slash ? slash + 1 : section + len);
        return;
    }
    buf_addstr(b, section);
}

/* Several programs may be attached to one place: returns whether the list, "A, B", has it. */
static bool has_place(const char *list, const char *place)
{
    size_t len = strlen(place);
    for (const char *at = list; (at = strstr(at, place)); at += len)
        if ((at == list || (at > list + 1 && at[-2] == ',')) && (!at[len] || at[len] == ','))
            return true;
    return false;
}

static bool applies(const struct sys_attachment *a, const struct btf *kernel)
{
    return !a->if_type || !kernel || btf__find_by_name_kind(kernel, a->if_type, BTF_KIND_STRUCT) >= 0;
}

static int stay_quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
    (void)level, (void)fmt, (void)args;
    return 0;
}

static void add_all(struct buf *b, const struct bpf_object *object, const struct sys_tool *tool,
                    const struct sys_attach_method *method, const struct btf *kernel)
{
    const size_t from = b->len;
    for (const struct sys_attachment *a = method->attach; a->program; a++) {
        const struct bpf_program *p = bpf_object__find_program_by_name(object, a->program);
        struct buf place = BUF_INIT;
        if (!p || !applies(a, kernel))
            continue;
        if (a->by_hand)
            buf_addstr(&place, "code of the process");
        else if (a->software_event)
            buf_addstr(&place, software_event(a->software_event));
        else
            add_place(&place, bpf_program__section_name(p));
        if (!has_place(buf_str(b) + from, buf_str(&place)))
            buf_printf(b, "%s%s", b->len > from ? ", " : "", buf_str(&place));
        buf_release(&place);
    }
    if (cgroups_gone_needed(tool, tool->parts))
        buf_addstr(b, ", cgroup_rmdir");
}

int attach_places_add(struct buf *b, const struct sys_tool *tool, const struct sys_attach_method *method)
{
    struct buf bytes = BUF_INIT;
    int error = bpf_object_inflate(tool->object, *tool->object_bytes, &bytes);
    libbpf_print_fn_t before = libbpf_set_print(stay_quiet);
    struct bpf_object *object = error ? NULL : bpf_object__open_mem(buf_str(&bytes), bytes.len, NULL);
    if (!error && !object)
        error = -errno;
    if (object) {
        struct btf *kernel = btf__load_vmlinux_btf();
        add_all(b, object, tool, method, kernel);
        btf__free(kernel);
        bpf_object__close(object);
    }
    libbpf_set_print(before);
    buf_release(&bytes);
    return error;
}
