/* SPDX-License-Identifier: BSD-2-Clause */
#include "machine/rungs.h"

#include <string.h>

/* The kernel's own iterator over a tracepoint's probes has the arguments by name; what probes are called with has not. */
static const struct btf_type *prototype_of(const struct btf *btf, const char *tracepoint)
{
    struct buf name = BUF_INIT;
    buf_printf(&name, "__traceiter_%s", tracepoint);
    int id = btf__find_by_name_kind(btf, buf_str(&name), BTF_KIND_FUNC);
    buf_release(&name);
    return id < 0 ? NULL : btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type);
}

bool rungs_arguments_fit(const struct btf *btf, const char *tracepoint, const char *arguments,
                         struct buf *why)
{
    const struct btf_type *proto = prototype_of(btf, tracepoint);
    if (!proto) {
        buf_printf(why, "this kernel's BTF does not tell the arguments of %s", tracepoint);
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
