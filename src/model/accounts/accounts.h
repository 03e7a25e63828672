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
 * Invariant: a program's counters only grow while its process lives; live memory is their difference, and may
 * be less than 0. The kernel's counters are what is held now.
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
    ACCOUNT_ALLOCATED_CALLS,
    ACCOUNT_ALLOCATED_BYTES, /* requested sizes */
    ACCOUNT_RELEASED_CALLS,
    ACCOUNT_RELEASED_BYTES,
    ACCOUNT_ALLOCATED_USABLE, /* usable bytes, as the allocator gave them; 0: not known (tags) */
    ACCOUNT_RELEASED_USABLE,
    /* objects freed by code at this place, allocated anywhere; 0: not known (tags) */
    ACCOUNT_FREED_BY_SITE_CALLS,
    ACCOUNT_FREED_BY_SITE_BYTES,
    ACCOUNT_FAILED, /* failed requests */
    /* Bounds of the most bytes that were ever live at once; 0: not known (sites). Of several places: the
     * greatest lower bound, and the sum of the upper bounds. */
    ACCOUNT_PEAK_BYTES,
    ACCOUNT_PEAK_HIGH_BYTES,
    ACCOUNT_COUNTERS
};

/** Page faults in memory that holds objects of the account, while they are being watched. Recordings do not
 * have them. */
enum account_faults {
    ACCOUNT_MINOR,
    ACCOUNT_MAJOR,
    ACCOUNT_SHARED, /* those of both kinds that hit a page with objects of other places, too */
    ACCOUNT_FAULTS
};

/** Page faults that belong to no account. */
struct account_faults_rest {
    /* in memory that never held an object that is followed: stacks, files, objects of unobserved code */
    uint64_t elsewhere;
    /* in memory that holds objects, but none at the fault's address: the object was freed, or the allocator's
     * own data */
    uint64_t none;
    uint64_t ended; /* the process ended before the object was looked up */
    uint64_t lost;  /* the kernel dropped these events and reported only their number */
};

struct account_sum {
    uint64_t of[ACCOUNT_COUNTERS];
    uint64_t faults[ACCOUNT_FAULTS];
    uint32_t places,
        inexact; /* the number of places, and of places for which something could not be attributed */
};

/** allocated - freed */
int64_t account_live_bytes(const struct account_sum *s);
int64_t account_live_objects(const struct account_sum *s);
/** Returns false if the allocator has no malloc_usable_size(): usable bytes and slack are not known then. */
bool account_slack_is_known(const struct account_sum *s);
int64_t account_slack_bytes(const struct account_sum *s);
/** Returns the sum of minor and major page faults. */
uint64_t account_faults(const struct account_sum *s);
/** Adds `from` to `to`. */
void account_sum_add(struct account_sum *to, const struct account_sum *from);

/* ---- rows ---- */

enum account_moment { ACCOUNT_BEFORE, ACCOUNT_AFTER, ACCOUNT_MOMENTS };

/** Identifies a row. In rows of groups larger than a place, the other members are 0. All but line and pid are
 * texts. */
struct account_key {
    uint32_t class, name; /* as the program names them */
    uint32_t file, line;
    uint32_t function;
    uint32_t module; /* path */
    uint32_t comm, pid;
};

struct account_row {
    struct account_key key;
    uint32_t copies; /* copies made by the compiler; of several moments, the most */
    uint64_t code;   /* address of the first copy in the module's file */
    struct account_sum of[ACCOUNT_MOMENTS];
};
struct account_rows VEC(struct account_row);

/** Counts of what could not be recorded or observed in a process. */
enum account_loss {
    ACCOUNT_LOST_PLACES,  /* places without an account: there was no room, or no module has their code */
    ACCOUNT_LOST_OBJECTS, /* objects that could not be followed: charged to no account */
    ACCOUNT_LOST_FREES,   /* frees that were not seen; known because the address was handed out again */
    ACCOUNT_LOST_RECORDS, /* inconsistent records */
    /* frees of objects that are not followed: allocated earlier, or by code without an account */
    ACCOUNT_FOREIGN_FREES,
    /* Places compiled with another version of <allium/tag.h>. Recordings add them to the lost places. */
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
    const char *why; /* the reason; static */
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
 * One reading. Its rows have their sums at ACCOUNT_AFTER. After accounts_merge() there is one row for each
 * process and place.
 */
struct accounts {
    struct account_rows rows;
    struct VEC(struct account_process) processes;
    struct account_text text;
    bool of_trace; /* made from a trace, which has no callers of wrappers */
};

void accounts_release(struct accounts *a);
/**
 * Merges the copies of each place into one row. If the lines tell two places apart but the copies have
 * several functions, the first function in alphabetical order is taken.
 */
void accounts_merge(struct accounts *a, const struct alloc_texts *texts);
/** Returns the seconds between two readings of the same process; 0: no process is in both. */
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
 * What tells rows apart besides class, name, file, line and module. Without ACCOUNT_PART_FUNCTION, the
 * function tells rows apart only where the line is unknown. With it, it always does: the kernel counts two
 * functions of one line (those of a macro, or inline functions of a header) separately.
 */
enum account_parts { ACCOUNT_PART_PROCESS = 1, ACCOUNT_PART_FUNCTION = 2 };
/**
 * Joins the rows of one reading or of two (`before` may be NULL) by place and by `parts`, a set of enum
 * account_parts. A place that is missing from one reading counts as 0 there.
 */
void account_rows_join(struct account_rows *to, const struct accounts *before, const struct accounts *after,
                       unsigned parts);
/** Adds up rows into `to`, which is empty. The directories become texts and stand in `file`. */
void account_rows_group(struct account_rows *to, const struct account_rows *from, enum account_group group,
                        struct alloc_texts *texts);
struct account_sum account_rows_total(const struct account_rows *r, enum account_moment moment);
/** Drops the rows in which nothing changed. */
void account_rows_keep_changed(struct account_rows *r);

/* ---- queries on rows by place, at ACCOUNT_AFTER ---- */

/**
 * Fields: class, name, func, file, dir, line, module, comm, pid, live, objects, peak, allocated, count,
 * freed, frees, failed, average, accurate.
 */
int account_query_parse(struct query **q, const char *text, struct error *e);
/** Parses a query on accounts of the kernel. Fields: func, file, dir, module, line, size, calls, average,
 * accurate. */
int account_query_parse_kernel(struct query **q, const char *text, struct error *e);
/** Returns whether the query uses the process. Then rows must be joined by process, too. */
bool account_query_needs_processes(const struct query *q);
/** Returns whether the query uses names from debug information: function, file, line. */
bool account_query_needs_names(const struct query *q);
bool account_row_fits(const struct account_row *row, const struct query *q, const struct alloc_texts *texts);
/** Returns whether the query uses figures. Then a place may match now and not later. */
bool account_query_needs_figures(const struct query *q);
/**
 * Appends the query as a clause that the row's process can evaluate itself, with the fields class, name,
 * function, file and module. Returns false if the query uses other fields or is too large.
 */
bool account_query_compile(const struct query *q, const struct account_row *row,
                           const struct alloc_texts *texts, struct buf *out);
/** Drops the rows that do not match. */
void account_rows_keep(struct account_rows *r, const struct query *q, const struct alloc_texts *texts);
/** Like account_rows_keep(), for a query of account_query_parse_kernel(). */
void account_rows_keep_kernel(struct account_rows *r, const struct query *q, const struct alloc_texts *texts);

#endif
