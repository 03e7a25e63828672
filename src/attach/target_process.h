/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ATTACH_TARGET_PROCESS_H
#define ATTACH_TARGET_PROCESS_H

/*
 * A running process: its memory, its mappings, the functions of its libraries.
 *
 * Runs in: the tool. Threads: one. Owns: what it opened, until target_close().
 * Invariant: nothing that the process has in its memory is believed; what is written goes into itself alone.
 */

#include <sys/types.h>

#include "base/error.h"
#include "collect/addrspace/proc_maps.h"
#include "collect/unwind/dso.h"
#include "symbol/probe/probe_file.h"

/** A mapped program or library. */
struct target_module {
    char *path;       /* as the process sees it */
    uint64_t inode;   /* of the file */
    uint64_t start;   /* of the mapping of its code */
    bool is_readable; /* else the rest is not set */
    uint64_t bias;    /* its addresses in the process, less those in the file */
    struct probe_file elf;
    struct dso *rules; /* for unwinding; NULL: there are none */
};

struct target {
    pid_t pid;
    int memory; /* /proc/PID/mem */
    char *root; /* prefix of its paths */
    struct mapped_files files;
    struct mapping_list maps;
    struct VEC(struct target_module *) modules; /* those that were opened */
};

/** Returns 0, or -errno with a line. */
int target_open(struct target *t, pid_t pid, struct error *e);
void target_close(struct target *t);
/** Reads the mappings anew, and opens all files with code: no thread is stopped meanwhile. */
int target_read_maps(struct target *t, struct error *e);
/** Returns what is mapped at the address, or NULL. */
const struct space_mapping *target_mapping(const struct target *t, uint64_t address);
/** Returns whether all bytes were read, or written. */
bool target_read(const struct target *t, uint64_t address, void *to, size_t bytes);
bool target_write(const struct target *t, uint64_t address, const void *from, size_t bytes);
/** Returns the mapped file whose name begins with `name` ("libc.so"). NULL: there is none, or it cannot be read. */
const struct target_module *target_module(const struct target *t, const char *name);
/** Returns the file of a mapping; NULL: it has none, or it cannot be read. */
const struct target_module *target_module_of(const struct target *t, const struct space_mapping *mapping);
/** Returns the last component of its path. */
const char *target_module_name(const struct target_module *m);
/** Finds an exported function, or variable; its address in the process; *bytes: its size. 0: there is none. */
uint64_t target_symbol(const struct target_module *m, const char *name, uint64_t *bytes);
/** Returns the exported function that contains an address of the process; NULL: none. */
const char *target_function_at(const struct target_module *m, uint64_t address);

#endif
