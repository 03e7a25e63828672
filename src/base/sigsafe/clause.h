/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_CLAUSE_H
#define BASE_SIGSAFE_CLAUSE_H

/*
 * A query about places in the code as bytes, which the process that has the places can judge: query_compile() makes one, of what such
 * a process knows. It may not know all, so that the answer may be neither yes nor no.
 *
 *     clause = CLAUSE_ALL COUNT clause...      all of them hold; none at all: yes
 *            | CLAUSE_ANY COUNT clause...      one of them holds; none at all: no
 *            | CLAUSE_TERM FIELD COUNT { HOW PATTERN 0 }   one of the patterns fits; HOW as pattern_fits() has it
 *
 * Each is a byte, but for the patterns. CLAUSE_NOT added to the first one turns its answer round.
 *
 * Runs in: target, cold paths, and the tool. Threads: any.
 * Invariant: whoever judges trusts no byte of it. Depth is bounded, and so is time, by the product of its length and the texts'.
 */

#include <stddef.h>
#include <stdint.h>

enum { CLAUSE_ALL = 1, CLAUSE_ANY, CLAUSE_TERM, CLAUSE_NOT = 0x80 };
#define CLAUSE_DEPTH_MOST 16
#define CLAUSE_COUNT_MOST 255

enum clause_field { CLAUSE_CLASS, CLAUSE_NAME, CLAUSE_FUNC, CLAUSE_FILE, CLAUSE_MODULE, CLAUSE_FIELDS };

/* What is known of a field. */
struct clause_value {
    const char *text; /* NULL: it has none */
    int sure;         /* 0: it may have another, or one at all: what does not fit may yet do so */
};

enum clause_answer { CLAUSE_NO, CLAUSE_YES, CLAUSE_UNKNOWN };

/** `get` is asked for the value of a field. What is no clause is never answered with yes. */
enum clause_answer clause_judge(const uint8_t *clause, size_t bytes,
                                struct clause_value (*get)(void *subject, enum clause_field field),
                                void *subject);

#endif
