/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_PATH_H
#define BPF_PATH_H

/* Paths of files, as programs in the kernel read them. See path.bpf.h. */

#include "bpf/sys.h"

#define PATH_BYTES      1024u /* of the names that are kept */
#define PATH_NAME_BYTES 256u  /* of one name, with its end */

enum path_flag {
    PATH_CUT = 1u << 0,     /* directories above the first one that was kept are missing */
    PATH_RENAMED = 1u << 1, /* the file had another path before: it was renamed, or has several */
    PATH_NOWHERE = 1u << 2, /* the file never was in a directory: it is one of memfd_create() or shmget() */
};

/** A file, by its number and its file system's. */
struct path_key {
    __u64 inode; /* of a System V segment its number, which may be 0 */
    __u32 device;
    __u32 reserved;
};

/** Its path: names from the file up to the root, each with a 0 at its end. */
struct path_text {
    /* The entry of the directory when the path was read: another one means another path. */
    __u64 entry, parent, name_hash;
    __u32 bytes; /* of names[] that are in use */
    __u32 flags; /* enum path_flag */
    __u32 pid;   /* the process in whose root the path was read */
    __u32 reserved;
    char names[PATH_BYTES + PATH_NAME_BYTES];
};

/** For the `counted` of a tool with paths. */
#define PATH_COUNTED                                                                                         \
    {                                                                                                        \
        SYS_PATHS_FULL, "path{s} found no room: the file is shown by its number", "file_names_lost", false   \
    }

#endif
