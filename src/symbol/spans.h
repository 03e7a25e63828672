/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_SPANS_H
#define SYMBOL_SPANS_H

/*
 * Address ranges that may overlap or nest, and the search for all ranges that contain an address.
 *
 * Runs in: the tool. Owns: the ranges, until symbol_spans_release().
 */

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol_span {
    uint64_t low, high; /* [low, high) */
    uint64_t reach;     /* the greatest high up to here; set by symbol_spans_sort() */
    size_t id;
};

struct symbol_spans VEC(struct symbol_span);

void symbol_spans_release(struct symbol_spans *s);
/** Adds a range. Empty ranges are left out. */
void symbol_spans_add(struct symbol_spans *s, uint64_t low, uint64_t high, size_t id);
/** Sorts by low; ranges with the same low by length, the longer one first; then by id. Must precede any
 * search. */
void symbol_spans_sort(struct symbol_spans *s);

/**
 * Visits the ranges that contain the address, the range with the greatest low first:
 *     for (size_t i = symbol_spans_seek(s, a); symbol_spans_next(s, a, &i);) use(&s->at[i]);
 * It gives up after 65536 ranges that do not contain the address; no valid file has so many.
 */
size_t symbol_spans_seek(const struct symbol_spans *s, uint64_t address);
bool symbol_spans_next(const struct symbol_spans *s, uint64_t address, size_t *i);

#endif
