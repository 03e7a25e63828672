/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys faults`: which code has page faults, where. */
#include "bpf/faults.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sys/tools/page_faults/fault_rows.h"
#include "sys/tools/page_faults/faults_growth.h"

#define BIT(column) FAULT_BIT(C_##column)

struct own {
    struct growth *growth; /* NULL: not asked for */
};

static void release(struct sys_session *s)
{
    struct own *o = s->own;
    if (o)
        growth_free(o->growth);
    free(o);
    s->own = NULL;
}

static int ready(struct sys_session *s, struct error *e)
{
    struct own *o = s->own ? s->own : mem_alloc(sizeof(struct own));
    bool growth = sys_option(s, "growth") != NULL;
    s->own = o;
    if (growth && !(s->settings.part->bits & FAULTS_BY_PROCESS && s->settings.part == s->tool->parts))
        return error_set(e, EINVAL, "--growth needs rows by process: leave out --by");
    int error = fault_rows_ready(s, growth, e);
    if (!error && growth && !o->growth)
        o->growth = growth_new();
    return error;
}

static void row(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    const struct own *o = s->own;
    const struct faults_key whole = fault_rows_key(s, key);
    struct faults_resident now;
    fault_rows_show(s, t, key, sum);
    if (o->growth && !bpf_map_lookup_elem(sys_map(s, "resident"), &whole.pid, &now) &&
        !memcmp(now.comm, whole.comm, sizeof(now.comm)))
        table_signed(t, C_GROWTH, growth_since(o->growth, whole.pid, &now));
}

static const struct sys_part parts[] = {
    {"process", "the process", FAULTS_BY_PROCESS, offsetof(struct faults_key, place),
     BIT(PID) | BIT(COMM) | BIT(CONTAINER), 0, .names = BIT(PID) | BIT(COMM)},
    {"comm", "the name of the process", FAULTS_BY_COMM, offsetof(struct faults_key, place), BIT(COMM), 0,
     .names = BIT(COMM)},
    {"place", "the instruction, and its process", FAULTS_BY_PROCESS | FAULTS_BY_PLACE,
     offsetof(struct faults_key, kernel_stack), BIT(PID) | BIT(COMM) | BIT(CONTAINER) | BIT(PLACE), 0,
     .spaces = true, .kernel_code = true, .names = BIT(PID) | BIT(COMM) | BIT(PLACE)},
    {"stack", "the whole stack, see --stacks, and its process", FAULTS_BY_PROCESS | FAULTS_BY_STACK,
     offsetof(struct faults_key, file),
     BIT(PID) | BIT(COMM) | BIT(CONTAINER) | BIT(USER_STACK) | BIT(KERNEL_STACK), SYS_STACK_USER,
     .names = BIT(PID) | BIT(COMM) | BIT(USER_STACK) | BIT(KERNEL_STACK)},
    {"file", "the file that is mapped there, or the kind of other memory", FAULTS_BY_FILE,
     sizeof(struct faults_key), FAULT_FILE_COLUMNS, 0, .names = FAULT_FILE_NAMES},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_option options[] = {
    FAULT_ROWS_ONLY,
    {"growth", NULL, "also print the growth of each process's resident memory", BIT(GROWTH)},
    {NULL},
};

static const char *const examples[] = {
    "allium sys faults --duration 10s",
    "show the page faults of each process, how many waited for a disk, and the kind of mapping",
    "allium sys faults --by file --only major",
    "show the files that were read because of page faults, until Ctrl-C",
    "allium sys faults --by stack --folded -- ./server > faults.folded",
    "write the stacks of a program that touch memory for the first time",
    "allium sys faults --growth --interval 1s --sort growth",
    "show every second which processes grow",
    NULL,
};

static const char *const questions[] = {
    "Which processes take page faults, how many of the faults wait for a disk, and what do they touch?",
    "Which code touches memory for the first time? (--by stack)",
    "Which files are read by page faults? (--by file)",
    "Which processes grow? (--growth)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "a page fault",
    .event_ns = 450,
    .measured = "rows by process; perf, Linux 6.18 in a virtual machine",
    .unseen = "pages that become resident without a fault of their own: mapped around the faulting page, or "
              "parts of a huge page (--growth has their bytes)",
};

SYS_OBJECT_OF(faults);

const struct sys_tool sys_faults = {
    .name = "faults",
    .summary = "show page faults by process, code or file",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(faults),
    .methods = fault_rows_methods,
    .columns = fault_rows_columns,
    .n_columns = FAULT_COLUMNS,
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
    .row = row,
    .ready = ready,
    .release = release,
};
