/* SPDX-License-Identifier: BSD-2-Clause */
/* Cgroups and containers by the ids of cgroups. */
#include "model/kernel/container_id.h"
#include "sys/names/cgroups_gone.h"
#include "sys/resolver.h"

static enum cgroup_hierarchy hierarchy_of(const struct sys_session *s)
{
    return s->settings.config.cgroup_v1 ? CGROUP_V1_MEMORY : CGROUP_V2;
}

/* Also of a cgroup that was removed since the tool began. */
static const char *path_of(struct sys_session *s, uint64_t id)
{
    struct cgroups *all = resolver_cgroups(s->names);
    const char *path = cgroups_path(all, hierarchy_of(s), id);
    if (!path && cgroups_gone_take(s, all, hierarchy_of(s)))
        path = cgroups_path(all, hierarchy_of(s), id);
    return path;
}

void resolver_container(struct sys_session *s, struct table *t, uint32_t column, uint64_t id)
{
    char name[CONTAINER_ID_BYTES];
    const char *path = id ? path_of(s, id) : NULL;
    if (path && container_id_of(path, name))
        table_text(t, column, name);
    else if (id && !path && cgroups_seen(resolver_cgroups(s->names), hierarchy_of(s)))
        table_text(t, column, RESOLVER_NO_CONTAINER);
}

void resolver_container_at(struct table *t, uint32_t column, const char *path)
{
    char name[CONTAINER_ID_BYTES];
    if (container_id_of(path, name))
        table_text(t, column, name);
}

void resolver_cgroup(struct sys_session *s, struct table *t, uint32_t column, uint32_t container, uint64_t id)
{
    table_text(t, column, path_of(s, id));
    resolver_container(s, t, container, id);
}

void resolver_memcg(struct sys_session *s, struct table *t, uint32_t column, uint64_t id)
{
    const enum cgroup_hierarchy memory = sys_memory_is_v1() ? CGROUP_V1_MEMORY : CGROUP_V2;
    table_text(t, column,
               memory == hierarchy_of(s) ? path_of(s, id)
                                         : cgroups_path(resolver_cgroups(s->names), memory, id));
}
