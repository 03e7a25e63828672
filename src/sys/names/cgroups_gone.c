/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/names/cgroups_gone.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "sys/attach_methods.h"

#define PROC_BYTES_MOST 65536u

/* The number of the hierarchy that has the memory controller, in /proc/cgroups: "memory\t9\t43\t1"; 0: version 2. */
static int memory_hierarchy(void)
{
    struct buf text = BUF_INIT;
    int number = 0;
    if (!file_read("/proc/cgroups", PROC_BYTES_MOST, &text)) {
        const char *line = strstr(buf_str(&text), "\nmemory\t");
        if (!line || sscanf(line, "\nmemory\t%d", &number) != 1)
            number = 0;
    }
    buf_release(&text);
    return number;
}

bool cgroups_gone_needed(const struct sys_tool *tool, const struct sys_part *part)
{
    return part ? tool->container && part->columns >> tool->container & 1 : tool->event != NULL;
}

void cgroups_gone_choose(struct sys_session *s, const struct btf *kernel)
{
    struct buf why = BUF_INIT;
    struct bpf_program *p = bpf_object__find_program_by_name(s->object, "cgroup_gone");
    int32_t *hierarchy = sys_variable(s, "cgroups_gone_hierarchy", sizeof(*hierarchy));
    if (p && hierarchy && cgroups_gone_needed(s->tool, s->settings.part) &&
        attach_method_arguments_fit(kernel, "cgroup_rmdir", "cgrp,path", &why)) {
        *hierarchy = s->settings.config.cgroup_v1 ? memory_hierarchy() : 0;
        bpf_program__set_autoload(p, true);
    }
    buf_release(&why);
}

bool cgroups_gone_take(struct sys_session *s, struct cgroups *all, enum cgroup_hierarchy hierarchy)
{
    const int map = sys_map(s, "cgroups_gone");
    struct sys_cgroup_gone gone;
    uint64_t id;
    bool any = false;
    while (map >= 0 && !bpf_map_get_next_key(map, NULL, &id)) {
        if (!bpf_map_lookup_elem(map, &id, &gone)) {
            gone.path[sizeof(gone.path) - 1] = '\0';
            cgroups_learn(all, hierarchy, id, gone.path);
            any = true;
        }
        if (bpf_map_delete_elem(map, &id))
            break;
    }
    return any;
}
