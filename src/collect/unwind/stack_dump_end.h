/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_STACK_DUMP_END_H
#define COLLECT_STACK_DUMP_END_H

/* How the walk of a copied stack ended, see stack_dump.h. */

enum stack_dump_end {
    STACK_DUMP_WHOLE,      /* all frames, to the outermost */
    STACK_DUMP_DEEP,       /* there are more frames than room for them */
    STACK_DUMP_CUT,        /* the rest of the stack was not copied */
    STACK_DUMP_UNREADABLE, /* the rest is in a page that could not be read when the stack was copied */
    STACK_DUMP_NO_FILE,    /* code that is in no readable file: JIT */
    STACK_DUMP_NO_RULES,   /* code without unwind rules */
    STACK_DUMP_BROKEN,     /* rules and bytes contradict each other */
    STACK_DUMP_ENDS
};

#endif
