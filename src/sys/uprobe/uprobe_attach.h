/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_UPROBE_ATTACH_H
#define SYS_UPROBE_ATTACH_H

/*
 * Uprobes of one process, each with a number (a cookie) for its program. Other processes that have the same file mapped
 * never stop at them.
 *
 * Runs in: the tool, as root. Threads: one. Owns: nothing; links and descriptors belong to the caller.
 */

#include <bpf/libbpf.h>

#include "base/vec.h"
#include "sys/session.h"

struct uprobe_links VEC(struct bpf_link *);
struct uprobe_fds VEC(int);

struct uprobe_spot {
    const char *path;
    pid_t pid;
    uint64_t offset, cookie;
};

/** Adds one link. `returns`: the program runs when the function that begins there returns. Returns 0 or -errno. */
int uprobe_attach(struct uprobe_links *links, struct sys_session *s, const char *program,
                  const struct uprobe_spot *spot, bool returns);
/** Removes all of them. The kernel waits for each one, so many are removed at the same time. */
void uprobe_detach(struct uprobe_links *links, struct uprobe_fds *fds);

enum uprobe_multi_kind {
    UPROBE_MULTI_ENTRY,   /* the program runs at each place; since Linux 6.6 */
    UPROBE_MULTI_RETURN,  /* ... when the function returns that begins there */
    UPROBE_MULTI_SESSION, /* also when the function returns, if it returned 0 at the entry; since 6.13 */
};

/** Many places of a file. */
struct uprobe_multi {
    const char *path;
    pid_t pid;
    enum uprobe_multi_kind kind;
    struct VEC(uint64_t) offsets, cookies;
};

/** Before loading: tells the kernel that the program is attached to many places. */
void uprobe_multi_ready(struct bpf_object *object, const char *program, enum uprobe_multi_kind kind);
/** Adds a descriptor; the probes are removed when it is closed. Returns 0 or -errno. */
int uprobe_attach_multi(struct uprobe_fds *fds, struct sys_session *s, const char *program,
                        const struct uprobe_multi *m);

#endif
