/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/base/sigsafe/clause: bytes that anybody may have written. The first byte says of which fields the
 * value is sure, then come the values, each to its NUL, and the clause. What is answered with less knowledge is true
 * with more.
 */
#include "require.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sigsafe/clause.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct subject {
    char *values[CLAUSE_FIELDS];
    unsigned sure;
    bool all; /* as if all were */
};

static struct clause_value get(void *arg, enum clause_field field)
{
    const struct subject *s = arg;
    require(field < CLAUSE_FIELDS, "a field that there is not");
    bool sure = s->all || s->sure >> field & 1;
    return (struct clause_value){sure ? s->values[field] : NULL, sure};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct subject s = {.sure = size ? *data : 0};
    size_t at = size ? 1 : 0;
    for (int i = 0; i < CLAUSE_FIELDS; i++) {
        size_t len = strnlen((const char *)data + at, size - at);
        s.values[i] = mem_strndup((const char *)data + at, len);
        at += len < size - at ? len + 1 : len;
    }
    size_t bytes = size - at;
    uint8_t *clause = malloc(bytes + !bytes); /* no byte more than it has, so that a look behind it is seen */
    if (bytes)
        memcpy(clause, data + at, bytes);
    enum clause_answer some = clause_judge(clause, bytes, get, &s);
    s.all = true;
    enum clause_answer whole = clause_judge(clause, bytes, get, &s);
    require(whole != CLAUSE_UNKNOWN, "all is known, and yet it is not");
    require(some == CLAUSE_UNKNOWN || some == whole, "more knowledge turns the answer round");
    free(clause);
    for (int i = 0; i < CLAUSE_FIELDS; i++)
        free(s.values[i]);
    return 0;
}
