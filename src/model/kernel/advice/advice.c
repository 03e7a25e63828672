/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of measures: its order, which measures exclude one another, and the total. */
#include "model/kernel/advice/advice.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/kernel/advice/advice_parts.h"

/* Less is not worth a line. */
#define LEAST_BYTES 4096u

static const char *const kind_names[ADVICE_KINDS] = {
    [ADVICE_BUCKET] = "bucket",    [ADVICE_SHRINK] = "free_slabs",       [ADVICE_TAIL] = "slab_tail",
    [ADVICE_ORDER] = "slab_order", [ADVICE_CPU_PARTIAL] = "cpu_partial", [ADVICE_RECLAIM] = "reclaimable",
    [ADVICE_TABLE] = "boot_table", [ADVICE_LOG] = "log_buffer",          [ADVICE_CONFIG] = "config",
    [ADVICE_MODULE] = "module",    [ADVICE_RESERVATION] = "reservation",
};

const char *advice_kind_name(enum advice_kind kind)
{
    return kind_names[kind];
}

/* ---- one measure ---- */

struct advice_measure *advice_add(struct advice *a, enum advice_kind kind, int64_t low_bytes,
                                  uint64_t high_bytes)
{
    if (high_bytes < LEAST_BYTES || high_bytes > INT64_MAX)
        return NULL;
    struct advice_measure *m = vec_push(&a->measures);
    *m = (struct advice_measure){.kind = kind,
                                 .low_bytes =
                                     low_bytes < (int64_t)high_bytes ? low_bytes : (int64_t)high_bytes,
                                 .high_bytes = high_bytes,
                                 .instead_of = ADVICE_NONE};
    return m;
}

static char *format(const char *fmt, va_list args)
{
    struct buf text = BUF_INIT;
    buf_vprintf(&text, fmt, args);
    return buf_detach(&text);
}

#define SET(field)                                                                                           \
    do {                                                                                                     \
        va_list args;                                                                                        \
        va_start(args, fmt);                                                                                 \
        free(field);                                                                                         \
        field = format(fmt, args);                                                                           \
        va_end(args);                                                                                        \
    } while (0)

void advice_change(struct advice_measure *m, const char *fmt, ...)
{
    SET(m->change);
}

void advice_formula(struct advice_measure *m, const char *fmt, ...)
{
    SET(m->formula);
}

void advice_cost(struct advice_measure *m, const char *fmt, ...)
{
    SET(m->cost);
}

void advice_row(struct advice_measure *m, const char *fmt, ...)
{
    char **row = vec_push(&m->rows);
    SET(*row);
}

void advice_unknown(struct advice *a, const char *fmt, ...)
{
    char **sentence = vec_push(&a->unknown);
    SET(*sentence);
}

void advice_claim_call(struct advice_measure *m, size_t call)
{
    *vec_push(&m->claims) = call;
}

void advice_claim_cache(struct advice_measure *m, const struct advice_input *in, size_t cache)
{
    *vec_push(&m->claims) = in->calls.len + cache;
}

/* ---- all of them ---- */

/*
 * By the middle of what they save, behind all others those that memory pressure would save anyhow; equal ones by their
 * texts, so that the order is always the same.
 */
static int by_size(const void *one, const void *other)
{
    const struct advice_measure *a = one, *b = other;
    if (a->reclaimable != b->reclaimable)
        return a->reclaimable - b->reclaimable;
    const double x = (double)a->low_bytes + (double)a->high_bytes,
                 y = (double)b->low_bytes + (double)b->high_bytes;
    return x != y ? (x < y) - (x > y) : strcmp(a->change, b->change);
}

/* Each claim is given to the largest measure that wants it, `owner` tells by claim. */
static void count(struct advice *a, size_t *owner)
{
    for (size_t i = 0; i < a->measures.len; i++) {
        struct advice_measure *m = &a->measures.at[i];
        if (m->reclaimable)
            continue;
        vec_each (const size_t, claim, &m->claims)
            if (owner[*claim] != ADVICE_NONE)
                m->instead_of = owner[*claim];
        if (m->instead_of != ADVICE_NONE)
            continue;
        vec_each (const size_t, claim, &m->claims)
            owner[*claim] = i;
        m->counted = true;
        if (__builtin_add_overflow(a->low_bytes, m->low_bytes, &a->low_bytes) ||
            __builtin_add_overflow(a->high_bytes, m->high_bytes, &a->high_bytes))
            return; /* no memory is so large */
    }
}

void advice_find(struct advice *a, const struct advice_input *in)
{
    const size_t n = in->calls.len + in->caches.len;
    size_t *owner = mem_array(n + 1, sizeof(*owner));
    *a = (struct advice){.low_bytes = 0};
    for (size_t i = 0; i < n; i++)
        owner[i] = ADVICE_NONE;
    advice_find_objects(a, in);
    advice_find_slabs(a, in);
    advice_find_boot(a, in);
    advice_find_code(a, in);
    if (a->measures.len)
        qsort(a->measures.at, a->measures.len, sizeof(*a->measures.at), by_size);
    count(a, owner);
    free(owner);
}

void advice_release(struct advice *a)
{
    vec_each (struct advice_measure, m, &a->measures) {
        free(m->change);
        free(m->formula);
        free(m->cost);
        vec_each (char *, row, &m->rows)
            free(*row);
        vec_release(&m->rows);
        vec_release(&m->claims);
    }
    vec_each (char *, sentence, &a->unknown)
        free(*sentence);
    vec_release(&a->measures);
    vec_release(&a->unknown);
}
