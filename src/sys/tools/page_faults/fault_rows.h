/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TOOLS_FAULT_ROWS_H
#define SYS_TOOLS_FAULT_ROWS_H

/*
 * The rows of `allium sys faults` and `allium sys ffaults`, which have the same programs (bpf/faults.bpf.c): columns,
 * attach methods, and how a record becomes a row. Rows by file are the same in both.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "bpf/faults.h"
#include "sys/session.h"

enum fault_column {
    C_PID,
    C_COMM,
    C_CONTAINER,
    C_PLACE,
    C_KIND,
    C_MAPPED,
    C_DEVICE,
    C_INODE,
    C_FAULTS,
    C_MINOR,
    C_MAJOR,
    C_BROUGHT_IN,
    C_READ_AHEAD,
    C_USER,
    C_KERNEL,
    C_ASKED,
    C_READ,
    C_WRITE,
    C_EXECUTE,
    C_ACCESS_UNKNOWN,
    C_HISTOGRAM,
    C_USER_STACK,
    C_KERNEL_STACK,
    C_SHARED_COLUMNS, /* ffaults has those before */

    C_CLASS = C_SHARED_COLUMNS, /* + enum mapping_class */
    C_GROWTH = C_CLASS + MAPPING_CLASSES,
    FAULT_COLUMNS
};
#define FAULT_BIT(column) (1ull << (column))
/** Of rows by file. */
#define FAULT_FILE_NAMES   (FAULT_BIT(C_KIND) | FAULT_BIT(C_MAPPED) | FAULT_BIT(C_DEVICE) | FAULT_BIT(C_INODE))
#define FAULT_FILE_COLUMNS (FAULT_FILE_NAMES | FAULT_BIT(C_BROUGHT_IN) | FAULT_BIT(C_READ_AHEAD))

extern const struct table_column fault_rows_columns[FAULT_COLUMNS];
extern const struct sys_attach_method fault_rows_methods[];
extern const struct sys_counted fault_rows_counted[];
extern const struct sys_measure fault_rows_measure;

/** The option --only of both tools. */
#define FAULT_ROWS_ONLY                                                                                      \
    {                                                                                                        \
        "only", "COLUMNS", "count only faults of these columns: major,heap"                                  \
    }

/** For ready(): `growth`: changes of resident memory are wanted, too. */
int fault_rows_ready(struct sys_session *s, bool growth, struct error *e);
void fault_rows_add(void *sum, const void *value);
/** Reads a key, of which the part's bytes are there. */
struct faults_key fault_rows_key(const struct sys_session *s, const void *key);
void fault_rows_show(struct sys_session *s, struct table *t, const void *key, const void *sum);

#endif
