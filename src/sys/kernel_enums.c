/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/kernel_enums.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>

#include "base/mem.h"

static char *lowered(const char *name)
{
    char *out = mem_alloc(strlen(name) + 1);
    for (size_t i = 0; name[i]; i++)
        out[i] = (char)tolower((unsigned char)name[i]);
    return out;
}

void kernel_enums_load(struct kernel_enums *e, const char *type, const char *prefix)
{
    struct btf *kernel = btf__load_vmlinux_btf();
    int id = kernel ? btf__find_by_name_kind(kernel, type, BTF_KIND_ENUM) : -1;
    size_t n = strlen(prefix);
    *e = (struct kernel_enums){{NULL}};
    if (id > 0) {
        const struct btf_type *t = btf__type_by_id(kernel, (uint32_t)id);
        const struct btf_enum *v = btf_enum(t);
        for (unsigned i = 0; i < btf_vlen(t); i++, v++) {
            const char *name = btf__name_by_offset(kernel, v->name_off);
            if (v->val < 0 || v->val >= KERNEL_ENUMS_VALUES_MAX || strncmp(name, prefix, n))
                continue;
            free(e->names[v->val]);
            e->names[v->val] = lowered(name + n);
        }
    }
    btf__free(kernel);
}

void kernel_enums_release(struct kernel_enums *e)
{
    for (unsigned i = 0; i < KERNEL_ENUMS_VALUES_MAX; i++)
        free(e->names[i]);
}
