/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ALLOC_SITES_H
#define MODEL_ALLOC_SITES_H

/*
 * Places in the source that allocate, with what they hold: bytes and calls, as the kernel's memory allocation profiling
 * counts them. Adds them up by what they have in common, at one moment or at two, and puts them in order. Where they
 * come from is not known here.
 *
 * Runs in: the tool. Threads: one at a time.
 * Owns: texts are the struct alloc_texts' own; sites and rows refer to them by number and hold no pointers.
 * Invariant: sums do not wrap; one that would is the largest (or least) that there is.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "query/query.h"

/* ---- texts ---- */

#define ALLOC_NO_TEXT                                                                                        \
    0u /* the number of a text that is not known: the module of what is built into the kernel */

/** Each text once, by a number. Begins zeroed. */
struct alloc_texts {
    struct map by_text;
    struct buf bytes;
    struct VEC(size_t) at; /* in `bytes`; number 1 stands first */
};

/** The text's number; `bytes` hold no NUL. */
uint32_t alloc_texts_put(struct alloc_texts *t, const char *bytes, size_t len);
/** NULL for ALLOC_NO_TEXT. Borrowed until the next text is put. */
const char *alloc_texts_get(const struct alloc_texts *t, uint32_t text);
void alloc_texts_release(struct alloc_texts *t);
/** The directory of a path: "mm" of "mm/slub.c", "." of "a.c", "/" of "/a.c". */
uint32_t alloc_texts_directory(struct alloc_texts *t, uint32_t file);
/** Each directory that a path lies in: "drivers/net/a.c" lies in "drivers/net" and in "drivers". NULL lies in none. */
void alloc_offer_directories(const char *path, struct query_probe *probe);

/* ---- sites ---- */

/** What makes a site one; of rows by less than that, the other numbers are 0. */
struct alloc_key {
    uint32_t file, line, module, function; /* all but the line are texts */
};

struct alloc_site {
    struct alloc_key key;
    int64_t bytes; /* the kernel's counters lie on each CPU: a sum may be less than 0 for a moment */
    uint64_t calls;
    bool inexact; /* the kernel says that it missed some */
};
struct alloc_sites VEC(struct alloc_site);

#define ALLOC_BAD_KEPT 8

struct alloc_bad {
    uint64_t line;   /* its number, from 1 */
    const char *why; /* words; static */
};

/** What one file of the kernel's listed. Whoever reads the file fills and releases it. */
struct alloc_listing {
    unsigned version, minor; /* of the format; 1.0: 1 and 0 */
    struct alloc_sites sites;
    uint64_t lines, bad_lines;
    struct alloc_bad bad[ALLOC_BAD_KEPT]; /* the first of the bad lines */
    bool cut;                             /* the last line has no end */
};

/* ---- rows ---- */

enum alloc_group {
    ALLOC_BY_SITE,
    ALLOC_BY_FILE,
    ALLOC_BY_DIRECTORY,
    ALLOC_BY_MODULE,
    ALLOC_BY_FUNCTION,
};

enum alloc_moment { ALLOC_BEFORE, ALLOC_AFTER, ALLOC_MOMENTS };

struct alloc_sum {
    int64_t bytes;
    uint64_t calls;
    uint32_t sites, inexact; /* so many sites, and so many of them that are not exact */
};

struct alloc_row {
    struct alloc_key key; /* by directory, `file` is the directory */
    struct alloc_sum of[ALLOC_MOMENTS];
};

struct alloc_rows {
    struct VEC(struct alloc_row) all;
    struct map by_key;
};

/** Adds sites, as rows by site: a site that comes several times (a function of a header) is one row. */
void alloc_rows_add(struct alloc_rows *r, const struct alloc_sites *sites, enum alloc_moment moment);
void alloc_rows_release(struct alloc_rows *r);
/** Adds up rows by site. `to` is empty. Directories become texts. */
void alloc_rows_group(struct alloc_rows *to, const struct alloc_rows *from, enum alloc_group group,
                      struct alloc_texts *texts);
/** Drops rows in which nothing changed. */
void alloc_rows_keep_changed(struct alloc_rows *r);
struct alloc_sum alloc_rows_total(const struct alloc_rows *r, enum alloc_moment moment);

/** A query about rows by site, of the moment after: func, file, dir, module, line, size, calls, average, accurate. */
int alloc_query_parse(struct query **q, const char *text, struct error *e);
/** Drops rows for which it does not hold. */
void alloc_rows_keep(struct alloc_rows *r, const struct query *q, const struct alloc_texts *texts);

/** a + b, and a - b, of calls: at the ends of what there is instead of around them. */
uint64_t alloc_calls_add(uint64_t a, uint64_t b);
int64_t alloc_calls_change(const struct alloc_row *row);
int64_t alloc_bytes_add(int64_t a, int64_t b);
int64_t alloc_bytes_change(const struct alloc_row *row);

#endif
