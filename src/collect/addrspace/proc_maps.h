/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROC_MAPS_H
#define COLLECT_PROC_MAPS_H

/*
 * /proc/PID/maps as mappings, and what kind of memory a mapping is.
 *
 * Runs in: the tool. Owns: nothing; what is read holds references to its files, which are the caller's to put.
 */

#include <sys/types.h>

#include "collect/addrspace/vma_history.h"

struct mapping_list VEC(struct space_mapping);

/**
 * Appends what the process maps now. 0; -ESRCH: there is no such process; -EACCES: it may not be looked at; -E2BIG: it
 * maps too much; -ETIMEDOUT: its memory map is locked; or -errno.
 */
int proc_maps_read(pid_t pid, struct mapped_files *files, struct mapping_list *out);
/** Appends one line, without its newline; false: it is none. */
bool proc_maps_take_line(const char *line, struct mapped_files *files, struct mapping_list *out);
void proc_maps_release(struct mapped_files *files, struct mapping_list *list);

/** By its name and its MAP_* flags. What the kernel calls heap may be more than it says: see address_spaces.h. */
enum mapping_kind proc_maps_kind(const char *path, uint32_t flags);

#endif
