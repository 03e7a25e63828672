/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CGROUP_LINE_H
#define COLLECT_CGROUP_LINE_H

/*
 * The text of /proc/PID/cgroup: a line for each hierarchy, "4:cpu,memory:/a/b" in version 1, where controllers may
 * share one, and "0::/a/b" in version 2.
 *
 * Runs in: the tool. Threads: any. Owns: nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/kernel/cgroup.h"

/** A group; the path points into the text, and does not end with a NUL. */
struct cgroup_line {
    int32_t hierarchy; /* its number: 0 is version 2 */
    const char *path;
    size_t path_len;
};

/** Finds the process's group. Returns false if it has none in this hierarchy. */
bool cgroup_line_find(const char *text, enum cgroup_hierarchy of, struct cgroup_line *out);

#endif
