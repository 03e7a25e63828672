/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_STACK_DUMP_H
#define COLLECT_STACK_DUMP_H

/*
 * A stack that was copied from a process: its registers and the bytes of its memory, walked with the unwind
 * rules of the mapped files. The process is not needed any more, and may have ended.
 *
 * Runs in: the tool. Threads: any. Owns: nothing.
 * Invariant: no data of a process is trusted: it can make a walk wrong or short, nothing else.
 */

#include "collect/unwind/dso_rules.h"
#include "collect/unwind/stack_dump_end.h"

/** Bytes of the stack's memory, from address `from` on. */
struct stack_dump_run {
    uint64_t from;
    size_t bytes;
    uint32_t missing; /* bit i: page i after that of `from` could not be read; its bytes mean nothing */
    const unsigned char *data;
};

#define STACK_DUMP_PAGE_BYTES 4096u
#define STACK_DUMP_RUNS       2

struct stack_dump {
    uint64_t arguments;                         /* start of the main thread's stack; 0: not known */
    uint64_t regs[REG_COUNT];                   /* by DWARF number; REG_RA: the pc */
    struct stack_dump_run run[STACK_DUMP_RUNS]; /* bytes 0: not used */
};

/** A place in a file. `file` is NULL if no file can be opened; the address is that in the ELF file. */
struct stack_dump_code {
    struct dso *file;
    uint64_t address;
};

struct stack_dump_frame {
    uint64_t pc;
    bool exact; /* `pc` was executing; else it is a return address */
};

/** Walks the frames, innermost first, at most `max`, and returns their number. `find` returns the file and
 * address of code at an address of the process. */
size_t stack_dump_walk(const struct stack_dump *c, struct stack_dump_code (*find)(void *arg, uint64_t pc),
                       void *arg, struct stack_dump_frame *out, size_t max, enum stack_dump_end *end);

#endif
