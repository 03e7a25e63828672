/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_CLAUSE_H
#define BASE_SIGSAFE_CLAUSE_H

/*
 * A query about places in the code, which query_compile() has compiled to bytes. The target evaluates such a query for
 * places in its own code. It may not know the value of a field, so the result may be "unknown".
 *
 *     clause = CLAUSE_ALL COUNT clause...      yes if all clauses are yes, or if COUNT is 0
 *            | CLAUSE_ANY COUNT clause...      yes if one of the clauses is yes; no if COUNT is 0
 *            | CLAUSE_TERM FIELD COUNT { HOW PATTERN 0 }   yes if a pattern fits the field; HOW: see pattern_fits()
 *
 * Each element is one byte, except patterns. CLAUSE_NOT added to the first byte of a clause negates its result.
 *
 * Runs in: target, cold paths, and the tool. Threads: any.
 * Invariant: the bytes may be invalid, as any process of the user may have written them. The depth of the evaluation is
 * bounded; its time is bounded by the product of the length of the query and the lengths of the texts.
 */

#include <stddef.h>
#include <stdint.h>

enum { CLAUSE_ALL = 1, CLAUSE_ANY, CLAUSE_TERM, CLAUSE_NOT = 0x80 };
#define CLAUSE_DEPTH_MOST 16
#define CLAUSE_COUNT_MOST 255

enum clause_field { CLAUSE_CLASS, CLAUSE_NAME, CLAUSE_FUNC, CLAUSE_FILE, CLAUSE_MODULE, CLAUSE_FIELDS };

/* What the target knows of the value of a field. */
struct clause_value {
    const char *text; /* NULL: the field has no value, or none is known */
    int sure;         /* 0: the value may be another one; so if no pattern matches, the result is unknown */
};

enum clause_answer { CLAUSE_NO, CLAUSE_YES, CLAUSE_UNKNOWN };

/** Evaluates a query; `get` returns the value of a field. The result for invalid bytes is never yes. */
enum clause_answer clause_judge(const uint8_t *clause, size_t bytes,
                                struct clause_value (*get)(void *subject, enum clause_field field),
                                void *subject);

#endif
