/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys ffaults`: page faults by file. Its programs and rows are those of `allium sys faults --by file`. */
#include "bpf/faults.h"

#include <stddef.h>

#include "sys/tools/page_faults/fault_rows.h"

#define BIT(column) FAULT_BIT(C_##column)
#define PROCESS     (BIT(PID) | BIT(COMM))

static int ready(struct sys_session *s, struct error *e)
{
    return fault_rows_ready(s, false, e);
}

static const struct sys_part parts[] = {
    {"process", "the file or kind of memory, and the process", FAULTS_BY_FILE | FAULTS_BY_PROCESS,
     sizeof(struct faults_key), PROCESS | BIT(CONTAINER) | FAULT_FILE_COLUMNS, 0,
     .names = PROCESS | FAULT_FILE_NAMES},
    {"comm", "the file, and the name of the process", FAULTS_BY_FILE | FAULTS_BY_COMM,
     sizeof(struct faults_key), BIT(COMM) | FAULT_FILE_COLUMNS, 0, .names = BIT(COMM) | FAULT_FILE_NAMES},
    {"file", "the file alone, as in rows of faults by file", FAULTS_BY_FILE, sizeof(struct faults_key),
     FAULT_FILE_COLUMNS, 0, .names = FAULT_FILE_NAMES},
    {"place", "the file, the instruction, and its process",
     FAULTS_BY_FILE | FAULTS_BY_PROCESS | FAULTS_BY_PLACE, sizeof(struct faults_key),
     PROCESS | BIT(CONTAINER) | BIT(PLACE) | FAULT_FILE_COLUMNS, 0, .spaces = true, .kernel_code = true,
     .names = PROCESS | BIT(PLACE) | FAULT_FILE_NAMES},
    {"stack", "the file, the whole stack, see --stacks, and its process",
     FAULTS_BY_FILE | FAULTS_BY_PROCESS | FAULTS_BY_STACK, sizeof(struct faults_key),
     PROCESS | BIT(CONTAINER) | BIT(USER_STACK) | BIT(KERNEL_STACK) | FAULT_FILE_COLUMNS, SYS_STACK_USER,
     .names = PROCESS | BIT(USER_STACK) | BIT(KERNEL_STACK) | FAULT_FILE_NAMES},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_option options[] = {
    FAULT_ROWS_ONLY,
    {NULL},
};

static const char *const examples[] = {
    "allium sys ffaults --duration 10s",
    "show in which files each process had page faults, and how many pages were read",
    "allium sys ffaults --by file --only major --sort read_ahead_pages",
    "show the files of which most was read ahead of the faults",
    "allium sys ffaults --where 'mapped:\"*(replaced)\"'",
    "show which processes still touch files that an update has replaced",
    NULL,
};

static const char *const questions[] = {
    "Which files do page faults read, and how much is read ahead?",
    "Which processes touch files that were deleted or replaced since?",
    "Which kinds of memory without a file have faults? (--by file)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "a page fault",
    .event_ns = 370,
    .measured = "a page of a mapped file; perf, Linux 6.18 in a busy virtual machine",
    .unseen = "pages that become resident without a fault of their own, and reads by read()",
};

SYS_OBJECT_OF(faults);
extern const struct sys_tool sys_ffaults;

const struct sys_tool sys_ffaults = {
    .name = "ffaults",
    .summary = "show page faults by file and process",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(faults),
    .methods = fault_rows_methods,
    .columns = fault_rows_columns,
    .n_columns = C_SHARED_COLUMNS,
    .weight = C_FAULTS,
    .measure = &fault_rows_measure,
    .container = C_CONTAINER,
    .parts = parts,
    .options = options,
    .counted = fault_rows_counted,
    .key_bytes = sizeof(struct faults_key),
    .value_bytes = sizeof(struct faults_value),
    .user_stack_at = offsetof(struct faults_key, user_stack),
    .add = fault_rows_add,
    .row = fault_rows_show,
    .ready = ready,
};
