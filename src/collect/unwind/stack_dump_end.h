/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_STACK_DUMP_END_H
#define COLLECT_STACK_DUMP_END_H

/*
 * How the walk of a stack that was taken with its bytes ended, see stack_dump.h.
 *
 * Runs in: the tool.
 */

enum stack_dump_end {
    STACK_DUMP_WHOLE,      /* every frame, to the outermost */
    STACK_DUMP_DEEP,       /* there are more than there was room for */
    STACK_DUMP_CUT,        /* the rest lies beyond what was taken */
    STACK_DUMP_UNREADABLE, /* ... in a page that could not be read when it was */
    STACK_DUMP_NO_FILE,    /* code that is in no file that could be looked at: JIT */
    STACK_DUMP_NO_RULES,   /* code without unwind rules */
    STACK_DUMP_BROKEN,     /* rules and bytes do not fit together */
    STACK_DUMP_ENDS
};

#endif
