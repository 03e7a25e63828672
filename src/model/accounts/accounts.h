/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_ACCOUNTS_H
#define MODEL_ACCOUNTS_H

/*
 * Exact accounts: the allocations and frees of each place of a program, counted by tags or by the agent's sites,
 * and the memory that each place of the kernel holds (/proc/allocinfo). Copies of a place are merged; places are
 * added up by what they have in common, at one moment or at two. The source of the accounts is not known here.
 *
 * Runs in: the tool. Threads: one at a time.
 * Owns: its rows. Texts belong to a struct alloc_texts, which readings that are compared share; rows refer to
 * them by number.
 * Invariant: a program's counters only grow while its process lives; live memory is their difference, and may be
 * less than 0. The kernel's counters are what is held now.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"
#include "model/accounts/alloc_texts.h"
#include "query/query.h"

/* ---- counters ---- */

enum account_counter {
    ACCOUNT_MADE_CALLS,
    ACCOUNT_MADE_BYTES, /* as asked for */
    ACCOUNT_GONE_CALLS,
    ACCOUNT_GONE_BYTES,
    ACCOUNT_MADE_USABLE, /* bytes as the allocator gave them; 0: that is not known, as of tags */
    ACCOUNT_GONE_USABLE,
    ACCOUNT_FREED_HERE_CALLS, /* by code at this place, whoever had made them; 0: not known, as of tags */
    ACCOUNT_FREED_HERE_BYTES,
    ACCOUNT_FAILED, /* requests */
    /* At least so much was live at once, and at most; 0: not known, as of sites. Of several places the most of one,
     * and the sum. */
    ACCOUNT_PEAK_BYTES,
    ACCOUNT_PEAK_HIGH_BYTES,
    ACCOUNT_COUNTERS
};

/** Page faults of memory in which its objects live, of the time in which somebody counts them: in no recording. */
enum account_faults {
    ACCOUNT_MINOR,
    ACCOUNT_MAJOR,
    ACCOUNT_SHARED, /* of both: objects of other places lie in the same page */
    ACCOUNT_FAULTS
};

/** Page faults of no account. */
struct account_faults_rest {
    uint64_t
        elsewhere; /* in memory that never held an object: stacks, files, objects that are not followed */
    uint64_t
        none; /* in memory that holds objects, but none where the fault was: freed, or the allocator's own */
    uint64_t ended; /* the process ended before the object was looked up */
    uint64_t lost;  /* of these the kernel gave only the number */
};

struct account_sum {
    uint64_t of[ACCOUNT_COUNTERS];
    uint64_t faults[ACCOUNT_FAULTS];
    uint32_t places,
        inexact; /* so many places, and so many of them of which something could not be attributed */
};

/** made - gone */
int64_t account_live_bytes(const struct account_sum *s);
int64_t account_live_objects(const struct account_sum *s);
/** Live bytes that were given beyond what was asked for. */
/** False: the allocator has no malloc_usable_size(), and so usable bytes and slack are not known. */
bool account_slack_is_known(const struct account_sum *s);
int64_t account_slack_bytes(const struct account_sum *s);
/** Page faults, minor and major. */
uint64_t account_faults(const struct account_sum *s);
/** from becomes a part of to. */
void account_sum_add(struct account_sum *to, const struct account_sum *from);

/* ---- rows ---- */

enum account_moment { ACCOUNT_BEFORE, ACCOUNT_AFTER, ACCOUNT_MOMENTS };

/** What makes a row one; of rows by less than a place, the others are 0. All but line and pid are texts. */
struct account_key {
    uint32_t class, name; /* as the program calls them */
    uint32_t file, line;
    uint32_t function;
    uint32_t module; /* path */
    uint32_t comm, pid;
};

struct account_row {
    struct account_key key;
    uint32_t copies; /* by the compiler; of several moments, the most */
    uint64_t code;   /* address in the module's file, of the first copy */
    struct account_sum of[ACCOUNT_MOMENTS];
};
struct account_rows VEC(struct account_row);

/** What could not be kept or seen, of a process. */
enum account_loss {
    ACCOUNT_LOST_PLACES,   /* for which there was no room */
    ACCOUNT_LOST_OBJECTS,  /* that could not be followed: charged to nobody */
    ACCOUNT_LOST_FREES,    /* gone past us; known since the address was handed out again */
    ACCOUNT_LOST_RECORDS,  /* that make no sense */
    ACCOUNT_FOREIGN_FREES, /* of objects that nobody follows: made before, or by code without an account */
    /* places compiled with another version of <allium/tag.h>; recordings add them to the lost places */
    ACCOUNT_LOST_VERSIONS,
    ACCOUNT_LOSSES
};

struct account_process {
    uint64_t image_id;
    uint64_t began_ns, taken_ns; /* CLOCK_REALTIME; 0: not known */
    uint64_t losses[ACCOUNT_LOSSES];
    char comm[16 + 1];
    int32_t pid;
    bool alive;
};

#define ACCOUNT_BAD_LINES 8

struct account_bad_line {
    uint64_t line;   /* its number, from 1 */
    const char *why; /* static */
};

/**
 * The text that accounts were read from, the kernel's /proc/allocinfo or a copy; all 0 where they came from
 * elsewhere.
 */
struct account_text {
    unsigned version, minor; /* of the format; 1.0: 1 and 0 */
    uint64_t lines, bad_lines;
    struct account_bad_line bad[ACCOUNT_BAD_LINES]; /* the first of the bad lines */
    bool cut;                                       /* the last line has no newline */
};

/**
 * One reading. Its rows have their sums at ACCOUNT_AFTER, and are by process and place once accounts_merge()
 * was called.
 */
struct accounts {
    struct account_rows rows;
    struct VEC(struct account_process) processes;
    struct account_text text;
};

void accounts_release(struct accounts *a);
/**
 * Copies of a place become one row; of their functions it has the first by its letters, where a line tells places
 * apart.
 */
void accounts_merge(struct accounts *a, const struct alloc_texts *texts);
/** The seconds between two readings of the same process, or 0: there is none that is in both. */
double accounts_seconds(const struct accounts *before, const struct accounts *after);

enum account_group {
    ACCOUNT_BY_PLACE,
    ACCOUNT_BY_FUNCTION,
    ACCOUNT_BY_MODULE_FUNCTION,
    ACCOUNT_BY_FILE,
    ACCOUNT_BY_DIRECTORY,
    ACCOUNT_BY_MODULE,
    ACCOUNT_BY_CLASS,
    ACCOUNT_BY_PROCESS,
};

/**
 * What tells rows apart beside their place: its class, name, file, line and module. The function does without
 * ACCOUNT_PART_FUNCTION where the line is unknown, and with it always: the kernel counts two functions of one
 * line (a macro's, an inline function's of a header) separately.
 */
enum account_parts { ACCOUNT_PART_PROCESS = 1, ACCOUNT_PART_FUNCTION = 2 };
/**
 * Joins one reading or two (`before` may be NULL) to rows by place and by `parts`, a set of enum account_parts.
 * A place that only one of the readings has was 0 in the other.
 */
void account_rows_join(struct account_rows *to, const struct accounts *before, const struct accounts *after,
                       unsigned parts);
/** Adds up rows. `to` is empty. Directories become texts: they stand in `file`. */
void account_rows_group(struct account_rows *to, const struct account_rows *from, enum account_group group,
                        struct alloc_texts *texts);
struct account_sum account_rows_total(const struct account_rows *r, enum account_moment moment);
/** Drops rows in which nothing changed. */
void account_rows_keep_changed(struct account_rows *r);

/* ---- queries, of rows by place, at the moment after ---- */

/**
 * class, name, func, file, dir, line, module, comm, pid, live, objects, peak, allocated, count, freed, frees,
 * failed, average, accurate.
 */
int account_query_parse(struct query **q, const char *text, struct error *e);
/** The same for the accounts of the kernel: func, file, dir, module, line, size, calls, average, accurate. */
int account_query_parse_kernel(struct query **q, const char *text, struct error *e);
/** Does it ask for the process? Then rows are to be joined by process, too. */
bool account_query_needs_processes(const struct query *q);
/** Does it ask for what debug information says: function, file, line? */
bool account_query_needs_names(const struct query *q);
bool account_row_fits(const struct account_row *row, const struct query *q, const struct alloc_texts *texts);
/** Does it ask for figures? Then a place may fit now and not later. */
bool account_query_needs_figures(const struct query *q);
/**
 * Appends it as a clause that the process of that row can judge for itself: of class, name, function, file and
 * module. False: it asks for more, or for too much.
 */
bool account_query_compile(const struct query *q, const struct account_row *row,
                           const struct alloc_texts *texts, struct buf *out);
/** Drops rows for which it does not hold. */
void account_rows_keep(struct account_rows *r, const struct query *q, const struct alloc_texts *texts);
/** The same for a query of account_query_parse_kernel(). */
void account_rows_keep_kernel(struct account_rows *r, const struct query *q, const struct alloc_texts *texts);

#endif
