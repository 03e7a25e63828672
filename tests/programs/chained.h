/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CHAINED_H
#define CHAINED_H

/*
 * Stacks of functions that keep a frame pointer and functions that do not, as they are and as a walk by rbp finds them:
 * what chained.c writes on its output, leaf first.
 */

#include <stdint.h>

#define CHAINED_MAX 64

enum chained_who {
    WITH_RBP,
    WITHOUT_RBP,
    LIBRARY_WITH_RBP,
    LIBRARY_WITHOUT_RBP,
    CHAINED_PARTS,
    LEAF = CHAINED_PARTS,
    MAIN,
    BEYOND
};

struct chained {
    int64_t pid;
    uint64_t time_ns;
    uint32_t n_truth, n_walked;
    uint64_t truth[CHAINED_MAX], walked[CHAINED_MAX]; /* where it was; then return addresses */
    uint32_t who[CHAINED_MAX];                        /* enum chained_who: whose code truth[] is in */
};

/* Told by each function of the chain before it calls the next. */
extern void chained_note(uint64_t returns_to, enum chained_who who);
extern void chained_next(void);
extern volatile uint64_t chained_any;

void with_rbp(void);
void without_rbp(void);
void library_with_rbp(void);
void library_without_rbp(void);

#endif
