/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_MAPPED_LEDGERS_H
#define COLLECT_MAPPED_LEDGERS_H

/*
 * Ledgers as processes map them, found through /proc, in any namespaces and root, even if a ledger has no
 * name (memfd) or has lost it.
 *
 * Runs in: the tool. Owns: nothing; descriptors belong to the caller.
 * Invariant: a file is opened only if it is the one that the process maps, a regular file on a tmpfs: no
 * link, pipe, device or file system of a stranger is followed, read or waited for.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MAPPED_LEDGERS_PATH_BYTES 512

struct mapped_ledgers_file {
    uint64_t start, end; /* 0, 0: it maps no such file */
    dev_t device;
    ino_t inode;
    char path[MAPPED_LEDGERS_PATH_BYTES]; /* as the kernel shows it to us; "/memfd:NAME" has no file name */
    bool deleted;                         /* the file has no name any more */
};

struct mapped_ledger {
    struct mapped_ledgers_file ledger, control;
    struct mapped_ledgers_file tags, tags_control; /* its ledger of tags */
    struct mapped_ledgers_file mark; /* left by an agent that could make no ledger: unobserved_list.h */
    pid_t inner_pid; /* in the name of a ledger: the pid in the process's own namespace when it made it */
    uint64_t image_id, tags_image_id;
    bool agent; /* the process maps the agent's library */
};

/**
 * Finds the ledgers that a process maps. Returns 0, also if there are none; -EACCES: no permission; -ESRCH:
 * no such process; -E2BIG: too many mappings, so the search was given up; -ETIMEDOUT: its memory map is
 * locked.
 */
int mapped_ledgers_find(pid_t pid, struct mapped_ledger *m);
/** Returns whether it maps a ledger of the agent. */
static inline bool mapped_ledgers_any(const struct mapped_ledger *m)
{
    return m->ledger.end != 0;
}

/** Returns the control page of that one of its ledgers. */
static inline const struct mapped_ledgers_file *mapped_ledgers_control(const struct mapped_ledger *m,
                                                                       uint64_t image_id)
{
    return m->tags.end && image_id == m->tags_image_id ? &m->tags_control : &m->control;
}

/** Returns whether the file never had a name. */
bool mapped_ledgers_nameless(const struct mapped_ledgers_file *file);

/**
 * Opens a file that mapped_ledgers_find() found, O_RDONLY or O_RDWR. Returns a descriptor; -ESTALE: it is
 * another file by now; -EPERM: not a regular file on a tmpfs; -EACCES: no permission (a memfd needs
 * CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN); or -errno.
 */
int mapped_ledgers_open(pid_t pid, const struct mapped_ledgers_file *file, int how);

#endif
