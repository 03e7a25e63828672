/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TAGS_H
#define COLLECT_TAGS_H

/*
 * The accounts of tags of a process, from its ledger: one row for each place in the source, copies of it added up.
 *
 * Runs in: the tool. Nothing in the ledger is trusted: what does not add up is left out, and counted.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "collect/ledger_copy.h"
#include "symbol/symbol.h"

struct tags_row {
    char *class, *name;    /* as the program calls them; "": it does not */
    char *file, *function; /* "": not known */
    char *module;          /* path; "": code outside every module */
    unsigned line;         /* 0: not known */
    uint32_t copies;       /* of the place, by the compiler */
    uint64_t made_calls, made_bytes, gone_calls, gone_bytes, failed;
    uint32_t of_module; /* number, or LEDGER_NONE */
    uint64_t code;      /* address in the module's file */
};

struct tags_module {
    char *path;
    uint8_t build_id[LEDGER_BUILD_ID_BYTES];
    size_t build_id_len;
};

struct tags {
    struct VEC(struct tags_row) rows;
    struct VEC(struct tags_module) modules;
    uint64_t unkept_tags;    /* for which the ledger had no room */
    uint64_t unkept_objects; /* that could not be followed: charged to nobody */
    uint64_t unseen_frees;   /* known since the address was handed out again */
    uint64_t damaged;        /* records that make no sense */
    pid_t pid;
    char comm[16 + 1];
    bool alive;
};

/** The accounts of a copy: a row for each descriptor, without names but the program's own. */
void tags_from_copy(struct tags *t, const struct ledger_copy *c);
/** Copies of a place become one row. */
void tags_merge(struct tags *t);
void tags_release(struct tags *t);
/** All of it: 0, or -errno with a line in `e`: -ESRCH no such process, -ENOENT it has no accounts. */
int tags_read(struct tags *t, pid_t pid, struct symbols *symbols, struct error *e);

#endif
