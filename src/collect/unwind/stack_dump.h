/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_STACK_DUMP_H
#define COLLECT_STACK_DUMP_H

/*
 * A stack that was taken from a process as it was: its registers and the bytes of its memory, walked by the unwind
 * rules of the files that were mapped. Nothing is asked of the process, which may have ended.
 *
 * Runs in: the tool. Threads: any. Owns: nothing. Invariant: nothing taken from a process may be trusted: what it holds
 * can make a walk wrong or short, no more.
 */

#include "collect/unwind/dso_rules.h"
#include "collect/unwind/stack_dump_end.h"

/** Bytes of its memory, as they lay from `from` on. */
struct stack_dump_run {
    uint64_t from;
    size_t bytes;
    uint32_t missing; /* bit i: the page i after that of `from` could not be read; its bytes mean nothing */
    const unsigned char *data;
};

#define STACK_DUMP_PAGE_BYTES 4096u
#define STACK_DUMP_RUNS       2

struct stack_dump {
    uint64_t arguments;                         /* where the main thread's stack begins; 0: not known */
    uint64_t regs[REG_COUNT];                   /* by their DWARF numbers; REG_RA: where it was */
    struct stack_dump_run run[STACK_DUMP_RUNS]; /* bytes 0: none */
};

/** Where in which file code lies; `file` NULL: in none that can be had. The address is the ELF's own. */
struct stack_dump_code {
    struct dso *file;
    uint64_t address;
};

struct stack_dump_frame {
    uint64_t pc;
    bool exact; /* it was here; else `pc` is a return address */
};

/** Frames, innermost first, at most `max`; returns how many. `find` is asked for code at an address of the process. */
size_t stack_dump_walk(const struct stack_dump *c, struct stack_dump_code (*find)(void *arg, uint64_t pc),
                       void *arg, struct stack_dump_frame *out, size_t max, enum stack_dump_end *end);

#endif
