/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_STACK_DUMP_END_H
#define COLLECT_STACK_DUMP_END_H

/*
 * How the walk of a stack that was taken with its bytes ended, see stack_dump.h.
 *
 * Runs in: the tool.
 */

enum captured_end {
    CAPTURED_WHOLE,      /* every frame, to the outermost */
    CAPTURED_DEEP,       /* there are more than there was room for */
    CAPTURED_CUT,        /* the rest lies beyond what was taken */
    CAPTURED_UNREADABLE, /* ... in a page that could not be read when it was */
    CAPTURED_NO_FILE,    /* code that is in no file that could be looked at: JIT */
    CAPTURED_NO_RULES,   /* code without unwind rules */
    CAPTURED_BROKEN,     /* rules and bytes do not fit together */
    CAPTURED_ENDS
};

#endif
