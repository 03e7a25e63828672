/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of what is told by texts about cgroups: mountinfo, which mount a path lies in, and the container of a
 * path. The bytes before the first NUL are mountinfo, those behind it a path, or /proc/PID/cgroup.
 */
#include "require.h"

#include "collect/kernel/cgroup_line.h"
#include "collect/kernel/cgroup_mounts.h"
#include "model/kernel/container_id.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What asks the system, once. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct mounts here;
    uint64_t id;
    (void)argc;
    (void)argv;
    mounts_read(&here);
    require(here.all.len, "nothing is mounted here");
    mounts_release(&here);
    require(!cgroup_folder_id("/proc", &id) && cgroup_folder_id("/nowhere/at all", &id) < 0,
            "folders have no ids");
    return 0;
}

static void check_mounts(const struct mounts *m, const char *path)
{
    const struct mount *around = cgroup_mount_around(m, path);
    require(!around || !strcmp(around->point, "/") || !strncmp(path, around->point, strlen(around->point)),
            "not around %s", path);
    vec_each (const struct mount, it, &m->all) {
        char joined[64];
        enum cgroup_hierarchy h;
        const char *controllers = cgroup_mount_controllers(it);
        require(controllers >= it->options && controllers <= it->options + strlen(it->options),
                "another text");
        if (cgroup_mount_is(it, &h))
            require(strlen(cgroup_mount_of(m, h)->root) <= strlen(it->root), "one that shows less");
        if (cgroup_join(it->root, path, joined, sizeof(joined))) {
            size_t len = strlen(joined);
            require(len && (len == 1 || joined[len - 1] != '/'), "not a path: %s", joined);
            require(cgroup_depth(joined) >= -1 && cgroup_depth(joined) < 64, "no depth");
        }
    }
}

static void check_line(const char *text)
{
    struct cgroup_line line;
    for (enum cgroup_hierarchy h = CGROUP_V2; h < CGROUP_HIERARCHIES; h++)
        if (cgroup_line_find(text, h, &line))
            require(line.hierarchy >= 0 && line.path > text &&
                        line.path + line.path_len <= text + strlen(text) &&
                        !memchr(line.path, '\n', line.path_len),
                    "a path that is not in a line");
}

static void check_container(const char *path)
{
    char id[CONTAINER_ID_BYTES];
    bool found = container_id_of(path, id);
    require(found == (id[0] != '\0'), "neither found nor not");
    for (const char *c = id; *c; c++)
        require(!iscntrl((unsigned char)*c), "a control character in a name");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    size_t len = strlen(text) < size ? strlen(text) + 1 : size;
    char *path = mem_strndup((const char *)data + len, size - len);
    struct mounts m = {.all = {0}};
    mounts_parse(&m, text);
    check_mounts(&m, path);
    check_line(path);
    check_container(path);
    mounts_release(&m);
    free(text);
    free(path);
    return 0;
}
