/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_CLAUSE_H
#define BASE_SIGSAFE_CLAUSE_H

/*
 * A query about places in the code, compiled to bytes by query_compile(), which the target evaluates for its own
 * places. The target may not know the value of a field, so that the result may be neither yes nor no.
 *
 *     clause = CLAUSE_ALL COUNT clause...      all of them hold; none at all: yes
 *            | CLAUSE_ANY COUNT clause...      one of them holds; none at all: no
 *            | CLAUSE_TERM FIELD COUNT { HOW PATTERN 0 }   one of the patterns fits; HOW as pattern_fits() has it
 *
 * Each element is one byte, except patterns. CLAUSE_NOT added to the first byte of a clause negates its result.
 *
 * Runs in: target, cold paths, and the tool. Threads: any.
 * Invariant: the evaluation trusts no byte. Its depth is bounded; its time is bounded by the product of the length of
 * the query and the lengths of the texts.
 */

#include <stddef.h>
#include <stdint.h>

enum { CLAUSE_ALL = 1, CLAUSE_ANY, CLAUSE_TERM, CLAUSE_NOT = 0x80 };
#define CLAUSE_DEPTH_MOST 16
#define CLAUSE_COUNT_MOST 255

enum clause_field { CLAUSE_CLASS, CLAUSE_NAME, CLAUSE_FUNC, CLAUSE_FILE, CLAUSE_MODULE, CLAUSE_FIELDS };

/* The value of a field, as far as it is known. */
struct clause_value {
    const char *text; /* NULL: the field has no value */
    int sure;         /* 0: it may have another value, so a pattern that does not match may match that one */
};

enum clause_answer { CLAUSE_NO, CLAUSE_YES, CLAUSE_UNKNOWN };

/** Evaluates a query; `get` returns the value of a field. The result for invalid bytes is never yes. */
enum clause_answer clause_judge(const uint8_t *clause, size_t bytes,
                                struct clause_value (*get)(void *subject, enum clause_field field),
                                void *subject);

#endif
