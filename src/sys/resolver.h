/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_RESOLVER_H
#define SYS_RESOLVER_H

/*
 * Names for what programs in the kernel see as numbers, put into a column of a table's last row: code, stacks, flags.
 *
 * Runs in: the tool. Owns: what was looked up, until resolver_free().
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/table/table.h"

struct names;
struct buf;
struct address_spaces;
struct user_frame;
struct user_stacks;
struct vmlinux;
struct sys_session;

/** What will be asked for. */
struct resolver_wanted {
    bool spaces;                   /* address spaces of processes */
    const struct vmlinux *vmlinux; /* of the kernel's source; lives longer. NULL: there is none */
    bool lines;                    /* files and lines with code of the kernel */
};

/** Never NULL; what cannot be had is missed where it is used. */
struct names *resolver_new(const struct resolver_wanted *wanted);
void resolver_free(struct names *n);
/** Reads the kernel's symbols, and does with them from then on: later there may be no memory to read them again. */
void resolver_settle(struct names *n);
/** The address spaces of processes, drained by whoever asks; NULL: not asked for, or they cannot be had. */
struct address_spaces *resolver_spaces(struct names *n);
/** Looks at a process now: it may soon be gone, or be another program. */
void resolver_know(struct names *n, int pid);
/**
 * Looks at the processes that run now, for so long at most: they may have ended when they are asked for. True: at all.
 */
bool resolver_meet(struct names *n, uint64_t most_ns);
/** Frames of user stacks that came from following an rbp that was no frame pointer: they are marked. */
uint64_t resolver_untrusted(const struct names *n);
/** Frames of user stacks without a name, as nothing is known of what lay there. */
uint64_t resolver_nameless(const struct names *n);
/** Why code of the kernel, which was asked for, has addresses for names, in words with what to do; "": it has names. */
const char *resolver_kernel_hidden(const struct names *n);

/* Of a call in the kernel, by its return address: */
/** "alloc_empty_file+0x1b [module]", with " (fs/file_table.c:215)" where lines are wanted and known. */
void resolver_kernel_call(struct sys_session *s, struct table *t, uint32_t column, uint64_t address);
/** "alloc_empty_file [module]": its function, without what the compiler added. */
void resolver_kernel_function(struct sys_session *s, struct table *t, uint32_t column, uint64_t address);
/** "fs/file_table.c": the file of the kernel's source; "[unknown] function [module]" where that is not known. */
void resolver_kernel_file(struct sys_session *s, struct table *t, uint32_t column, uint64_t address);
/** "fs": that file's directory; else as resolver_kernel_file(). */
void resolver_kernel_directory(struct sys_session *s, struct table *t, uint32_t column, uint64_t address);

/** As resolver_kernel_call(), of the instruction at the address itself: "do_shrink+0x0" is "do_shrink". */
void resolver_kernel_code(struct sys_session *s, struct table *t, uint32_t column, uint64_t address);
/** "function (file)": a place in a process at a time (CLOCK_MONOTONIC). */
void resolver_user(struct sys_session *s, struct table *t, uint32_t column, uint64_t address, uint32_t pid,
                   uint64_t time_ns);
/** Readable when what processes map is to be taken in, before records of it are lost: resolver_drain(). -1: never. */
int resolver_fd(const struct names *n);
void resolver_drain(struct names *n);
/** Records of that which were lost all the same: what they told is read again of processes that still live. */
uint64_t resolver_lost(const struct names *n);
/** What user stacks are looked up with; NULL as resolver_spaces(). */
struct user_stacks *resolver_users(struct names *n);
/** A line for each function that a frame's code is part of, innermost first. */
void resolver_add_user_frame(struct names *n, struct buf *b, const struct user_frame *f);
/** A line for each frame, innermost first; nothing where there is no stack. */
void resolver_kernel_stack(struct sys_session *s, struct table *t, uint32_t column, int stack);
/** The same of a process's stack at a time (CLOCK_MONOTONIC). "?" before a frame: it cannot be trusted. */
void resolver_user_stack(struct sys_session *s, struct table *t, uint32_t column, int stack, uint32_t pid,
                         uint64_t time_ns);
/** The path of a cgroup of the memory controller by its id, whichever hierarchy that is in. */
void resolver_memcg(struct sys_session *s, struct table *t, uint32_t column, uint64_t id);
/** The path of a cgroup by its id, and the container that it is, if any. */
void resolver_cgroup(struct sys_session *s, struct table *t, uint32_t column, uint32_t container,
                     uint64_t id);
/** Where the container should stand of a cgroup that was removed before anybody looked, or is out of sight. */
#define RESOLVER_NO_CONTAINER "(unknown)"
/** The container that a cgroup is, by its id; nothing where it is none. */
void resolver_container(struct sys_session *s, struct table *t, uint32_t column, uint64_t id);
/** The same, by the cgroup's path. */
void resolver_container_at(struct table *t, uint32_t column, const char *path);
/** "GFP_KERNEL|__GFP_ZERO". */
void resolver_gfp(struct sys_session *s, struct table *t, uint32_t column, uint64_t flags);

#endif
