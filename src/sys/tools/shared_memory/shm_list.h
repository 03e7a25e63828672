/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TOOLS_SHM_LIST_H
#define SYS_TOOLS_SHM_LIST_H

/*
 * The shared memory that exists now, and the processes that have it mapped: segments of shmget() in allium's IPC
 * namespace, files in /dev/shm, and files of memfd_create() and memory of MAP_SHARED|MAP_ANONYMOUS that some
 * process has mapped. It is read from /proc, one process after the other: changes meanwhile may be missed.
 *
 * Runs in: the tool.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "base/vec.h"

struct shm_entry {
    uint64_t inode;  /* of a segment: its identifier */
    uint32_t device; /* as the kernel numbers devices; 0: it is a segment */
    int32_t key;
    uint32_t mode, uid, creator; /* of segments, and of files in /dev/shm but for the creator; else 0 */
    uint64_t bytes, resident_bytes;
    bool resident_known, is_open;
    bool bytes_unsure;         /* the largest mapping of a file that no process has open by a descriptor */
    char *name;                /* as in /proc/PID/maps; NULL: a segment */
    uint32_t mappings;         /* in all processes that we may examine; of a segment the kernel's number */
    struct VEC(uint32_t) pids; /* each once */
};

struct shm_list {
    struct VEC(struct shm_entry) entries;
    struct map index; /* by struct shm_key */
};

/** What tells them apart. */
struct shm_key {
    uint64_t inode;
    uint32_t device, reserved;
};

/** Never fails: what cannot be read is left out. */
void shm_list_read(struct shm_list *l);
/** Adds the segments of shmget() alone, to a list that is empty. */
void shm_list_read_segments(struct shm_list *l);
void shm_list_release(struct shm_list *l);

/** The device of a file of that path, as the kernel numbers it, if its file system is in memory; 0: none. */
uint32_t shm_list_device(const char *path);
/** The same for files of memfd_create(). */
uint32_t shm_list_memfd_device(void);

#endif
