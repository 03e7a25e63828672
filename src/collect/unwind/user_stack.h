/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_USER_STACK_H
#define COLLECT_USER_STACK_H

/*
 * From the addresses of a user stack, as bpf_get_stack() has them, to what symbols_resolve() takes; also for processes
 * that have ended.
 *
 * Runs in: the tool. Threads: one. Owns: files and roots that it opened, until user_stacks_free().
 */

#include "collect/addrspace/address_spaces.h"
#include "collect/unwind/fp_chain.h"
#include "collect/unwind/stack_dump_end.h"
#include "symbol/symbol.h"

struct stack_dump;
struct user_stacks;

/** The spaces stay the caller's, and must live longer. */
struct user_stacks *user_stacks_new(struct address_spaces *spaces);
void user_stacks_free(struct user_stacks *u);

enum user_frame_kind {
    USER_FRAME_FILE,       /* code of a file */
    USER_FRAME_LOST,       /* of one that cannot be looked at any more: `address` is an offset in it */
    USER_FRAME_SPECIAL,    /* the vdso and its like: `address` is an offset in it */
    USER_FRAME_ANONYMOUS,  /* JIT code, or no code at all: `address` is the process's */
    USER_FRAME_NOT_MAPPED, /* as far as is known */
};

struct user_frame {
    enum user_frame_kind kind;
    struct symbol_module module; /* its path is "" where there is none */
    uint64_t address;            /* for symbols_resolve() */
    bool trusted;                /* false: it comes from following an rbp that was none */
};

/**
 * Finds n frames of a process at a time: pcs[0] is where it was, the others are return addresses. Drain the spaces
 * before. What out[] points to is valid until the next call, and the next address_spaces_drain(). Returns how many can
 * be trusted, and why not more (may be NULL).
 */
size_t user_stacks_find(struct user_stacks *u, pid_t pid, uint64_t time_ns, const uint64_t *pcs, size_t n,
                        struct user_frame *out, enum fp_chain_end *why);

/**
 * The frames of a stack that was taken with its bytes, at most `max`: all of them can be trusted. Drain the spaces
 * before; valid as long as those of user_stacks_find(). Returns how many.
 */
size_t user_stacks_walk(struct user_stacks *u, pid_t pid, uint64_t time_ns, const struct stack_dump *c,
                        struct user_frame *out, size_t max, enum stack_dump_end *end);

#endif
