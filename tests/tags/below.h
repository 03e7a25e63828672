/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_TAGS_BELOW_H
#define TESTS_TAGS_BELOW_H

/*
 * An allocator that counts exactly who asked: a thread says at which place it is before it calls, in code that knows
 * nothing of tags. The counts lie in a file, BELOW_DIR/PID, and outlive the process. Linked behind liballium, so that
 * both the program and the library call it.
 *
 * Each call is one step under a lock, with signals blocked: handlers may allocate at any time.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BELOW_PLACES  1024
#define BELOW_FOREIGN 0 /* code without tags */
/* and a place: what it calls is one request, for which below_done() says what came of it */
#define BELOW_WHOLE (1 << 16)
/* Tagged code that only frees, unmaps or moves: what it does is counted where the object was made. */
#define BELOW_FREES  1
#define BELOW_UNMAPS 2
#define BELOW_MOVES  3

struct below_row {
    uint64_t made_calls, made_bytes;
    uint64_t gone_calls, gone_bytes; /* by whomever */
    uint64_t failed;
    /* Freed by code without tags, and neither was the address handed to tagged code again, nor did that free it. */
    int64_t hidden_calls, hidden_bytes;
    uint64_t asked, refused; /* by the program's own words: its requests, and those of which nothing came */
};

struct below_counts {
    uint64_t unseen; /* such that came to light with the address */
    struct below_row rows[BELOW_PLACES];
};

#define BELOW_REFUSALS (1 << 17) /* and a place: of BELOW_SKIP, what below_asked() counts */

extern __thread volatile int below_place __attribute__((tls_model("initial-exec")));
/** Of the requests of tagged places, one in so many fails; 0: none. */
extern volatile unsigned below_fails;
/** Places whose tags are off: what they make and what fails there is of no account. */
extern volatile unsigned char below_off[BELOW_PLACES];
/** What came of a request at a place that was entered with BELOW_WHOLE: an object of so many bytes; NULL: it failed. */
void below_done(int place, void *object, size_t bytes);
/** What was asked for when the object was made. */
size_t below_bytes(const void *object);
/** fork(), while nobody else is in the allocator. */
pid_t below_fork(void);
/** What an account of bytes was told: an object more, or one less with `gone`. */
void below_account(int place, size_t bytes, int gone);
/** What came of a request, as the program sees it. */
void below_asked(int place, int refused);
/** Ends the program if the kernel has mapped other pages than are booked here. Nobody maps any meanwhile. */
void below_check_maps(void);

/** The thread is at this place from now on; -> where it was. */
static inline int below_at(int place)
{
    int was = below_place;
    below_place = place;
    return was;
}

#ifdef __cplusplus
}
#endif

#endif
