/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/attach_methods.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#define PROBES "/sys/bus/event_source/devices"

/* The kernel's own iterator over a tracepoint's probes has the arguments by name; what probes are called with has
 * not. */
static const struct btf_type *prototype_of(const struct btf *btf, const char *tracepoint)
{
    struct buf name = BUF_INIT;
    buf_printf(&name, "__traceiter_%s", tracepoint);
    int id = btf__find_by_name_kind(btf, buf_str(&name), BTF_KIND_FUNC);
    buf_release(&name);
    return id < 0 ? NULL : btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type);
}

bool attach_method_arguments_fit(const struct btf *btf, const char *tracepoint, const char *arguments,
                                 struct buf *why)
{
    const struct btf_type *proto = prototype_of(btf, tracepoint);
    if (!proto) {
        buf_printf(why, "this kernel's BTF does not describe the arguments of %s", tracepoint);
        return false;
    }
    const struct btf_param *params = btf_params(proto);
    unsigned n = btf_vlen(proto), i = 1; /* the first one is the probe's own data */
    for (const char *want = arguments; *want; i++) {
        size_t len = strcspn(want, ",");
        const char *have = i < n ? btf__name_by_offset(btf, params[i].name_off) : "none";
        if (strlen(have) != len || strncmp(have, want, len)) {
            buf_printf(why, "argument %u of %s is %s here, not %.*s", i, tracepoint, have, (int)len, want);
            return false;
        }
        want += len + (want[len] == ',');
    }
    return true;
}

int attach_method_argument(const struct btf *btf, const char *tracepoint, const char *argument)
{
    const struct btf_type *proto = prototype_of(btf, tracepoint);
    for (unsigned i = 1; proto && i < btf_vlen(proto); i++) /* the first one is the probe's own data */
        if (!strcmp(btf__name_by_offset(btf, btf_params(proto)[i].name_off), argument))
            return (int)i - 1;
    return -1;
}

/* Does the kernel take a program at a function's begin or end? One that does nothing tells. */
static bool takes_program_at(const struct btf *btf, const char *function, enum bpf_attach_type type,
                             struct buf *why)
{
    static const struct bpf_insn nothing[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0}, /* return 0 */
        {.code = BPF_JMP | BPF_EXIT},
    };
    LIBBPF_OPTS(bpf_prog_load_opts, how, .expected_attach_type = type);
    int id = btf__find_by_name_kind(btf, function, BTF_KIND_FUNC);
    if (id < 0) {
        buf_printf(why, "this kernel's BTF has no function %s", function);
        return false;
    }
    how.attach_btf_id = (uint32_t)id;
    int fd =
        bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "GPL", nothing, sizeof(nothing) / sizeof(*nothing), &how);
    if (fd < 0) {
        buf_printf(why, "%s: a program of type %s cannot be attached to %s", strerror(errno),
                   type == BPF_TRACE_FENTRY ? "fentry" : "fexit", function);
        return false;
    }
    close(fd);
    return true;
}

bool attach_method_program_fits(const struct btf *btf, const struct bpf_program *p, struct buf *why)
{
    const char *section = bpf_program__section_name(p), *function = strchr(section, '/');
    enum bpf_attach_type type = bpf_program__expected_attach_type(p);
    if (!function)
        return true;
    if (bpf_program__type(p) == BPF_PROG_TYPE_TRACING &&
        (type == BPF_TRACE_FENTRY || type == BPF_TRACE_FEXIT))
        return takes_program_at(btf, function + 1, type, why);
    bool kprobe = !strncmp(section, "kprobe/", 7) || !strncmp(section, "kretprobe/", 10);
    if (kprobe && !access(PROBES, F_OK) && access(PROBES "/kprobe", F_OK)) {
        buf_printf(why, "%s: this kernel was built without kprobes (CONFIG_KPROBE_EVENTS)", section);
        return false;
    }
    return true;
}

/* Members of a member without a name count as the outer one's. */
static bool type_has_member(const struct btf *btf, const struct btf_type *type, const char *member)
{
    const struct btf_member *m = btf_members(type);
    for (unsigned i = 0; btf_is_composite(type) && i < btf_vlen(type); i++) {
        const char *name = btf__name_by_offset(btf, m[i].name_off);
        if (*name ? !strcmp(name, member)
                  : type_has_member(btf, btf__type_by_id(btf, (uint32_t)btf__resolve_type(btf, m[i].type)),
                                    member))
            return true;
    }
    return false;
}

bool attach_method_has_member(const struct btf *btf, const char *type, const char *member)
{
    int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
    return id > 0 && type_has_member(btf, btf__type_by_id(btf, (uint32_t)id), member);
}
