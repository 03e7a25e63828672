/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_USER_STACK_H
#define COLLECT_USER_STACK_H

/*
 * Converts the addresses of a user stack, as bpf_get_stack() returns them, to arguments for
 * symbols_resolve(); also for processes that have ended.
 *
 * Runs in: the tool. Threads: one. Owns: files and roots that it opened, until user_stacks_free().
 */

#include "collect/addrspace/address_spaces.h"
#include "collect/unwind/fp_chain.h"
#include "collect/unwind/stack_dump_end.h"
#include "symbol/symbol.h"

struct stack_dump;
struct user_stacks;

/** The spaces belong to the caller and must live longer. */
struct user_stacks *user_stacks_new(struct address_spaces *spaces);
void user_stacks_free(struct user_stacks *u);

enum user_frame_kind {
    USER_FRAME_FILE,       /* code of a file */
    USER_FRAME_LOST,       /* of a file that cannot be read any more: `address` is an offset in it */
    USER_FRAME_SPECIAL,    /* the vdso and the like: `address` is an offset in it */
    USER_FRAME_ANONYMOUS,  /* JIT code, or no code: `address` is that of the process */
    USER_FRAME_NOT_MAPPED, /* as far as known */
};

struct user_frame {
    enum user_frame_kind kind;
    struct symbol_module module; /* its path is "" if it has none */
    uint64_t address;            /* for symbols_resolve() */
    bool trusted;                /* false: the frame comes from following an rbp that was no frame pointer */
};

/**
 * Finds n frames of a process at a time: pcs[0] was executing, the others are return addresses. Drain the
 * spaces before. out[] points to data that is valid until the next call, and the next address_spaces_drain().
 * Returns how many frames are right, and why not more (may be NULL).
 */
size_t user_stacks_find(struct user_stacks *u, pid_t pid, uint64_t time_ns, const uint64_t *pcs, size_t n,
                        struct user_frame *out, enum fp_chain_end *why);

/**
 * Finds the frames of a copied stack, at most `max`; all of them are right. Drain the spaces before. Valid as
 * long as the frames of user_stacks_find(). Returns their number.
 */
size_t user_stacks_walk(struct user_stacks *u, pid_t pid, uint64_t time_ns, const struct stack_dump *c,
                        struct user_frame *out, size_t max, enum stack_dump_end *end);

#endif
