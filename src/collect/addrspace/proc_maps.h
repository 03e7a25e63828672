/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROC_MAPS_H
#define COLLECT_PROC_MAPS_H

/*
 * Reads /proc/PID/maps as mappings, and classifies a mapping.
 *
 * Runs in: the tool. Owns: nothing; the mappings hold references to files, which the caller puts.
 */

#include <sys/types.h>

#include "collect/addrspace/vma_history.h"

struct mapping_list VEC(struct space_mapping);

/**
 * Appends the present mappings of the process. Returns 0; -ESRCH: no such process; -EACCES: no permission;
 * -E2BIG: too many mappings; -ETIMEDOUT: its memory map is locked; or -errno.
 */
int proc_maps_read(pid_t pid, struct mapped_files *files, struct mapping_list *out);
/** Appends the mapping of one line, without its newline. Returns false if the line is not one. */
bool proc_maps_take_line(const char *line, struct mapped_files *files, struct mapping_list *out);
void proc_maps_release(struct mapped_files *files, struct mapping_list *list);

/** Classifies a mapping by its name and its MAP_* flags. The heap may be larger than the kernel's "[heap]":
 * see address_spaces.h. */
enum mapping_kind proc_maps_kind(const char *path, uint32_t flags);

#endif
