/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EVENT_SUMS_H
#define MODEL_EVENT_SUMS_H

/*
 * Events that are added up by key, of any number of processes: the table of `allium trace --sum` and of `allium events
 * --sum`.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its rows, until event_sums_free(). A table borrows the names of its
 * columns from the sums that it was made of, and is freed before them.
 */

#include "base/sigsafe/sum_cells.h"
#include "model/table/table.h"
#include "model/trace/sum_spec.h"
#include "model/trace/trace_event.h"

struct event_sums;

/* Texts are cut to as many bytes, between characters. */
#define EVENT_SUMS_TEXT_BYTES 32u

enum event_sums_kind {
    EVENT_SUMS_ABSENT,
    EVENT_SUMS_WHOLE,
    EVENT_SUMS_SIGNED,
    EVENT_SUMS_REAL,
    EVENT_SUMS_TEXT
};

/* The value of one field of a key. */
struct event_sums_value {
    enum event_sums_kind kind;
    bool bytes;       /* a number counts bytes */
    uint64_t bits;    /* of a number, as in sum_cells.h */
    const char *text; /* of a text: borrowed */
};

/* The key of a row. */
struct event_sums_key {
    bool others; /* of all keys for which there was no room */
    struct event_sums_value by[SUM_SPEC_BY_MAX];
};

/** `spec` is borrowed. */
struct event_sums *event_sums_new(const struct sum_spec *spec);
void event_sums_free(struct event_sums *s); /* NULL is allowed */
/** Adds figures to the row of a key; events of the table without a value have SUM_NONE. `bytes`: values are bytes. */
void event_sums_add(struct event_sums *s, const struct event_sums_key *key, const struct sum_cells *cells,
                    enum sum_type type, bool bytes);
/** Adds all rows of `other`, which has the same spec. */
void event_sums_add_all(struct event_sums *s, const struct event_sums *other);
/** Makes the table tell rates: over `seconds`, from the counts of `before` on (NULL: from 0). */
void event_sums_begin_span(struct event_sums *s, const struct event_sums *before, double seconds);
/** Notes that there are `events` events that have no row: they came before there was a table. */
void event_sums_note_early(struct event_sums *s, uint64_t events);
uint64_t event_sums_early(const struct event_sums *s);
/** Notes that `events` more events were lost, which may belong to any row: the table's figures are then bounds. */
void event_sums_note_lost(struct event_sums *s, uint64_t events);
uint64_t event_sums_lost(const struct event_sums *s);

/** Returns the value of a number field; EVENT_FLOAT: `bits` are the bits of a double. See below for `text`. */
struct event_sums_value event_sums_value_of_number(const struct event_field *f, uint64_t bits, char *text,
                                                   size_t room);
/**
 * Returns the value of the field with that name: a field of the event, or one that all events have (event, pid,
 * thread, cpu). A text is in `text`, which has room for `room` bytes. `site` is EVENT_SUMS_WHOLE.
 */
struct event_sums_value event_sums_value_of(const char *name, const struct trace_event *e, char *text,
                                            size_t room);
/** Returns the type and value of the field that is added up. `e->fields` NULL: only the type. */
enum sum_type event_sums_number_of(const struct sum_spec *spec, const struct trace_event *e, uint64_t *bits,
                                   bool *bytes);

/** Appends the name of a call: "function file.c:12", or "library.so+0x1234"; nothing if nothing is known. */
void event_sums_add_site(struct buf *b, const char *function, const char *file, uint32_t line,
                         const char *module, uint64_t address);
/** Returns the events of keys for which there was no room: those of the row without a key. */
uint64_t event_sums_others(const struct event_sums *s);
/** Appends what the user must know of fields that no event had; `b` stays empty if all is well. */
void event_sums_add_lacks(struct buf *b, const struct event_sums *s);

/**
 * Returns the rows: those with the largest sums first, or, without values, with the most events; at most `top` (0:
 * all). The caller frees the table.
 */
struct table *event_sums_table(struct event_sums *s, uint32_t top);

#endif
