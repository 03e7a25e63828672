/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/slab_attach.h"

#include "sys/kernel_symbol_address.h"

void slab_attach_ready(struct sys_session *s)
{
    uint64_t *offset = sys_variable(s, "page_offset_base_at", sizeof(*offset));
    uint64_t *map = sys_variable(s, "vmemmap_base_at", sizeof(*map));
    bool *tells = sys_variable(s, "kernel_tells_cache", sizeof(*tells));
    if (offset && map) {
        *offset = kernel_symbol_address("page_offset_base");
        *map = kernel_symbol_address("vmemmap_base");
    }
    if (tells)
        *tells = kernel_symbol_address("bpf_get_kmem_cache") != 0;
}
