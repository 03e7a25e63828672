/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sigsafe/clause.h"

#include <stdbool.h>

#include "base/sigsafe/pattern.h"

struct judge {
    const uint8_t *at, *end;
    struct clause_value (*get)(void *subject, enum clause_field field);
    void *subject;
    bool broken; /* the bytes are invalid */
    bool idle;   /* the result is already decided: get(), which may be slow, is not called */
};

static uint8_t next_byte(struct judge *j)
{
    if (j->at < j->end)
        return *j->at++;
    j->broken = true;
    return 0;
}

/* Returns the pattern at j->at, and advances j->at past its NUL. */
static const char *next_pattern(struct judge *j, unsigned how)
{
    const uint8_t *start = j->at;
    while (j->at < j->end && *j->at)
        j->at++;
    bool prefixed = !(how & PATTERN_ANYWHERE) ||
                    (j->at - start >= PATTERN_ANYWHERE_BYTES && start[0] == '*' && start[1] == '/');
    j->broken |= j->at == j->end || !prefixed;
    j->at += j->at < j->end;
    return (const char *)start;
}

static enum clause_answer judge_term(struct judge *j)
{
    uint8_t field = next_byte(j), count = next_byte(j);
    struct clause_value v = {.text = NULL};
    bool fits = false;
    if (field >= CLAUSE_FIELDS || j->broken)
        j->broken = true;
    else if (!j->idle)
        v = j->get(j->subject, (enum clause_field)field);
    for (; count && !j->broken; count--) {
        unsigned how = next_byte(j);
        const char *pattern = next_pattern(j, how);
        fits = fits || (!j->broken && v.text && pattern_fits(pattern, how, v.text));
    }
    return fits ? CLAUSE_YES : v.sure ? CLAUSE_NO : CLAUSE_UNKNOWN;
}

static enum clause_answer judge_next(struct judge *j, unsigned depth);

static enum clause_answer judge_group(struct judge *j, bool any, unsigned depth)
{
    enum clause_answer decisive = any ? CLAUSE_YES : CLAUSE_NO, answer = any ? CLAUSE_NO : CLAUSE_YES;
    bool was_idle = j->idle;
    for (uint8_t count = next_byte(j); count && !j->broken; count--) {
        enum clause_answer one = judge_next(j, depth + 1);
        if (one == decisive || (one == CLAUSE_UNKNOWN && answer != decisive))
            answer = one;
        j->idle = was_idle || answer == decisive;
    }
    j->idle = was_idle;
    return answer;
}

static enum clause_answer judge_next(struct judge *j, unsigned depth)
{
    static const enum clause_answer turned[] = {
        [CLAUSE_NO] = CLAUSE_YES, [CLAUSE_YES] = CLAUSE_NO, [CLAUSE_UNKNOWN] = CLAUSE_UNKNOWN};
    uint8_t head = next_byte(j), kind = head & (uint8_t)~CLAUSE_NOT;
    enum clause_answer answer = CLAUSE_NO;
    if (kind == CLAUSE_TERM)
        answer = judge_term(j);
    else if ((kind == CLAUSE_ALL || kind == CLAUSE_ANY) && depth < CLAUSE_DEPTH_MOST)
        answer = judge_group(j, kind == CLAUSE_ANY, depth);
    else
        j->broken = true;
    return head & CLAUSE_NOT ? turned[answer] : answer;
}

enum clause_answer clause_judge(const uint8_t *clause, size_t bytes,
                                struct clause_value (*get)(void *subject, enum clause_field field),
                                void *subject)
{
    struct judge j = {.at = clause, .end = clause + bytes, .get = get, .subject = subject};
    enum clause_answer answer = judge_next(&j, 0);
    return j.broken || j.at != j.end ? CLAUSE_NO : answer;
}
