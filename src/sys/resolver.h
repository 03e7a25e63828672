/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_RESOLVER_H
#define SYS_RESOLVER_H

/*
 * Resolves numbers from programs in the kernel (code addresses, stacks, flags) to names, and stores them in a
 * column of a table's last row.
 *
 * Runs in: the tool. Owns: cached names, until resolver_free().
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/table/table.h"

struct names;
struct buf;
struct cgroups;
struct address_spaces;
struct user_frame;
struct user_stacks;
struct source_finder;
struct vmlinux;
struct symbol_frame;
struct symbol_frames;
struct sys_session;
struct wrappers;

/** What the tool will need. */
struct resolver_wanted {
    bool spaces; /* address spaces of processes */
    /* source of the kernel; must outlive the resolver. NULL: there is none */
    const struct vmlinux *vmlinux;
    /* for what vmlinux does not tell; likewise */
    struct source_finder *finder;
    /* see sys/record/kernel_capture.h; must outlive the resolver. NULL: none */
    const struct wrappers *helpers;
    bool lines; /* add files and lines to code of the kernel */
};

/** Never returns NULL. Parts that are not available are reported where they are needed. */
struct names *resolver_new(const struct resolver_wanted *wanted);
void resolver_free(struct names *n);
/** Reads the kernel's symbols now, and never again: later there may be no memory for it. */
void resolver_freeze(struct names *n);
/** Returns the address spaces of processes, to be drained by the caller; NULL: not requested, or not
 * available. */
struct address_spaces *resolver_spaces(struct names *n);
/** Returns the cgroups whose paths are known. */
struct cgroups *resolver_cgroups(struct names *n);
/** Reads the process now: it may end soon, or execute another program. */
void resolver_know(struct names *n, int pid);
/**
 * Reads the running processes, for at most that time, because they may have ended when they are needed.
 * Returns true when all are read.
 */
bool resolver_meet(struct names *n, uint64_t most_ns);
/** Frames of user stacks that came from following an rbp that was no frame pointer; they are marked. */
uint64_t resolver_untrusted(const struct names *n);
/** Frames of user stacks without a name, because the mapping at their address is not known. */
uint64_t resolver_nameless(const struct names *n);
/**
 * Returns why requested code of the kernel is shown as addresses, in words, with advice; "": it has names.
 */
const char *resolver_kernel_hidden(const struct names *n);

/* For a call in the kernel, given by its return address: */
/**
 * "alloc_empty_file+0x1b [module]", with " (helper)" if it is one, and " (fs/file_table.c:215)" if lines are requested
 * and known.
 */
void resolver_kernel_call(struct sys_session *s, struct table *t, uint32_t column, uint64_t address);
/** "alloc_empty_file [module]": the function, without the compiler's suffixes, with " (helper)" if it is one. */
void resolver_kernel_function(struct sys_session *s, struct table *t, uint32_t column, uint64_t address);
/**
 * Returns a number for the call that does not reveal the kernel's load address and is the same after a reboot. For the
 * kernel's own code: the offset from _stext; for other code: a hash of the function's name, and the offset in it. Calls
 * in functions of one name may have the same number. 0: no symbol contains the address.
 */
uint64_t resolver_kernel_number(struct names *n, uint64_t address);
/** Appends the call, as resolver_kernel_call() names it, without lines; the file, as resolver_kernel_file() does. */
void resolver_add_kernel_call(struct names *n, struct buf *b, uint64_t address);
void resolver_add_kernel_file(struct names *n, struct buf *b, uint64_t address);
/** Appends the function, as resolver_kernel_function() names it. */
void resolver_add_kernel_function(struct names *n, struct buf *b, uint64_t address);
/** Returns whether the code is part of how a BPF program of a tool came to be called, and not of what it observes. */
bool resolver_kernel_is_bpf(struct names *n, uint64_t address);
/**
 * Fills `out` with the functions at the call, the innermost inlined one first, from the first one that no header
 * defines: kmalloc() and the like are left out. Returns false if they are not known. They belong to `n`, until the next
 * call.
 */
bool resolver_kernel_frames(struct names *n, uint64_t address, struct symbol_frames *out);
/** Returns the file of such a function, relative to the top of the kernel's tree; NULL: not known. */
const char *resolver_kernel_frame_file(const struct names *n, const struct symbol_frame *f);
/** "fs/file_table.c": the file of the kernel's source; "[unknown] function [module]" if it is not known. */
void resolver_kernel_file(struct sys_session *s, struct table *t, uint32_t column, uint64_t address);
/** "fs": the directory of that file; else as resolver_kernel_file(). */
void resolver_kernel_directory(struct sys_session *s, struct table *t, uint32_t column, uint64_t address);

/** Like resolver_kernel_call(), for the instruction at the address itself: "do_shrink+0x0" is "do_shrink". */
void resolver_kernel_code(struct sys_session *s, struct table *t, uint32_t column, uint64_t address);
/** "function (file)": a place in a process at a time (CLOCK_MONOTONIC). */
void resolver_user(struct sys_session *s, struct table *t, uint32_t column, uint64_t address, uint32_t pid,
                   uint64_t time_ns);
/** Returns a descriptor that is readable when records about mappings should be read before some are lost:
 * call resolver_drain(). -1: none. */
int resolver_fd(const struct names *n);
void resolver_drain(struct names *n);
/** Returns the number of such records that were lost nevertheless. For processes that still live the mappings
 * are read again. */
uint64_t resolver_lost(const struct names *n);
/** Returns the object that looks up user stacks; NULL as for resolver_spaces(). */
struct user_stacks *resolver_users(struct names *n);
/** Adds a line for each function at a frame's address, innermost first. */
void resolver_add_user_frame(struct names *n, struct buf *b, const struct user_frame *f);
/** Adds a line for each frame, innermost first; nothing if there is no stack. */
void resolver_kernel_stack(struct sys_session *s, struct table *t, uint32_t column, int stack);
/** Like the function above, for a process's stack at a time (CLOCK_MONOTONIC). "?" before a frame: it may be
 * wrong. */
void resolver_user_stack(struct sys_session *s, struct table *t, uint32_t column, int stack, uint32_t pid,
                         uint64_t time_ns);
/** The path of a cgroup with the memory controller by its id, in whichever hierarchy. */
void resolver_memcg(struct sys_session *s, struct table *t, uint32_t column, uint64_t id);
/** The path of a cgroup by its id, and its container, if it is one. */
void resolver_cgroup(struct sys_session *s, struct table *t, uint32_t column, uint32_t container,
                     uint64_t id);
/** The text for the container of a cgroup that was removed before its path was read, or is not visible. */
#define RESOLVER_NO_CONTAINER "(unknown)"
/** The container of a cgroup, by the cgroup's id; nothing if it is none. */
void resolver_container(struct sys_session *s, struct table *t, uint32_t column, uint64_t id);
/** Like the function above, by the cgroup's path. */
void resolver_container_at(struct table *t, uint32_t column, const char *path);
/** "GFP_KERNEL|__GFP_ZERO". */
/** Appends "GFP_KERNEL|__GFP_ZERO". */
void resolver_add_gfp(struct names *n, struct buf *b, uint64_t flags);
void resolver_gfp(struct sys_session *s, struct table *t, uint32_t column, uint64_t flags);

#endif
