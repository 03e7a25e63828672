/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys faults`: which code has page faults, where. */
#include "bpf/faults.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "sys/resolver.h"
#include "sys/session.h"
#include "sys/tools/faults_growth.h"

enum column {
    PID,
    COMM,
    CONTAINER,
    PLACE,
    FILE_NAME,
    FAULTS,
    MINOR,
    MAJOR,
    GROWTH,
    USER,
    KERNEL,
    ASKED,
    READ,
    WRITE,
    EXECUTE,
    ACCESS_UNKNOWN,
    HEAP,
    STACK,
    ANONYMOUS,
    FILE_PAGES,
    SHARED,
    HUGETLB,
    OTHER,
    CLASS_UNKNOWN,
    HISTOGRAM,
    USER_STACK,
    KERNEL_STACK
};

#define BIT(column) (1ull << (column))

static const struct table_column columns[] = {
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [PLACE] = {"place", TABLE_PLAIN, TABLE_TEXT},
    [FILE_NAME] = {"mapped", TABLE_PLAIN, TABLE_TEXT},
    [FAULTS] = {"faults", TABLE_COUNT, TABLE_WHOLE},
    [MINOR] = {"minor", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 9},
    [MAJOR] = {"major", TABLE_COUNT, TABLE_WHOLE},
    [GROWTH] = {"growth", TABLE_BYTES, TABLE_SIGNED, .hide_if_empty = true},
    [USER] = {"user", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 8},
    [KERNEL] = {"kernel", TABLE_COUNT, TABLE_WHOLE},
    [ASKED] = {"asked", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 7},
    [READ] = {"read", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 5},
    [WRITE] = {"write", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 4},
    [EXECUTE] = {"execute", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 6},
    [ACCESS_UNKNOWN] = {"access_unknown", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 11},
    [HEAP] = {"heap", TABLE_COUNT, TABLE_WHOLE},
    [STACK] = {"stack", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 2},
    [ANONYMOUS] = {"anonymous", TABLE_COUNT, TABLE_WHOLE},
    [FILE_PAGES] = {"file", TABLE_COUNT, TABLE_WHOLE},
    [SHARED] = {"shared", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 1},
    [HUGETLB] = {"hugetlb", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 3},
    [OTHER] = {"other", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 10},
    [CLASS_UNKNOWN] = {"class_unknown", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 12},
    [HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
};

/* Each mark's column, which is also its word in --only. */
static const enum column column_of[FAULTS_MARKS] = {
    [FAULTS_MINOR] = MINOR,
    [FAULTS_MAJOR] = MAJOR,
    [FAULTS_USER] = USER,
    [FAULTS_KERNEL] = KERNEL,
    [FAULTS_ASKED] = ASKED,
    [FAULTS_READ] = READ,
    [FAULTS_WRITE] = WRITE,
    [FAULTS_EXECUTE] = EXECUTE,
    [FAULTS_ACCESS_UNKNOWN] = ACCESS_UNKNOWN,
    [FAULTS_HEAP] = HEAP,
    [FAULTS_STACK] = STACK,
    [FAULTS_ANONYMOUS] = ANONYMOUS,
    [FAULTS_FILE] = FILE_PAGES,
    [FAULTS_SHARED] = SHARED,
    [FAULTS_HUGETLB] = HUGETLB,
    [FAULTS_OTHER] = OTHER,
    [FAULTS_CLASS_UNKNOWN] = CLASS_UNKNOWN,
};

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

static int mark_of(const char *word, size_t len)
{
    for (int i = 0; i < FAULTS_MARKS; i++) {
        const char *name = columns[column_of[i]].name;
        if (strlen(name) == len && !strncmp(name, word, len))
            return i;
    }
    return -1;
}

/* "major,heap": of each group of which something is named, nothing else is wanted. */
static int parse_only(const char *text, uint32_t *only, struct error *e)
{
    static const uint32_t groups[] = {FAULTS_KINDS, FAULTS_MODES, FAULTS_ACCESSES, FAULTS_CLASSES};
    uint32_t named = 0;
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ",");
        int mark = mark_of(at, len);
        if (mark < 0)
            return error_set(e, EINVAL, "--only %s: unknown column '%.*s'; use columns such as major,heap",
                             text, (int)len, at);
        named |= 1u << mark;
        at += len + (at[len] == ',');
    }
    *only = 0;
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
        *only |= named & groups[i] ? named & groups[i] : groups[i];
    return 0;
}

/* A way that cannot tell what is asked for would show nothing, or all as one. */
static int check_method(const struct sys_session *s, const char *only, struct error *e)
{
    for (const char *at = only ? only : ""; *at;) {
        size_t len = strcspn(at, ",");
        int mark = mark_of(at, len);
        if (mark >= 0 && s->lacking & BIT(column_of[mark]))
            return error_set(e, EOPNOTSUPP, "--only %.*s: this attach method cannot tell which faults are %s",
                             (int)len, at, columns[column_of[mark]].name);
        at += len + (at[len] == ',');
    }
    if (s->settings.part->bits & FAULTS_BY_FILE && s->lacking & BIT(FILE_PAGES))
        return error_set(e, EOPNOTSUPP, "--by %s: this attach method does not see mappings",
                         s->settings.part->name);
    return 0;
}

static bool is_loaded(const struct sys_session *s, const char *program)
{
    const struct bpf_program *p = bpf_object__find_program_by_name(s->object, program);
    return p && bpf_program__autoload(p);
}

/* What is not used gets no room. */
static void shrink(struct sys_session *s, const char *map)
{
    bpf_map__set_max_entries(bpf_object__find_map_by_name(s->object, map), 1);
}

static void load_beginnings(struct sys_session *s, bool wanted)
{
    static const char *const programs[] = {"begin_user", "begin_kernel"};
    for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
        bpf_program__set_autoload(bpf_object__find_program_by_name(s->object, programs[i]), wanted);
}

static int ready(struct sys_session *s, struct error *e)
{
    const char *only = sys_option(s, "only");
    uint32_t *wanted = sys_variable(s, "only", sizeof(*wanted));
    struct own *o = s->own ? s->own : mem_alloc(sizeof(struct own));
    bool growth = sys_option(s, "growth") != NULL;
    s->own = o;
    if (only && parse_only(only, wanted, e))
        return -EINVAL;
    if (growth && !(s->settings.part->bits & FAULTS_BY_PROCESS && s->settings.part == s->tool->parts))
        return error_set(e, EINVAL, "--growth needs rows by process: leave out --by");
    int error = check_method(s, only, e);
    if (error)
        return error;
    if (is_loaded(s, "exit_fault")) /* its end tells all but since when it is under way */
        load_beginnings(s, s->settings.config.histograms);
    if (!is_loaded(s, "begin_user"))
        shrink(s, "begun");
    if (!(s->settings.part->bits & FAULTS_BY_FILE))
        shrink(s, "file_names");
    if (!growth)
        shrink(s, "resident");
    else if (!o->growth)
        o->growth = growth_new();
    bpf_program__set_autoload(bpf_object__find_program_by_name(s->object, "tp_resident"), growth);
    return 0;
}

static void add(void *sum, const void *value)
{
    struct faults_value *a = sum;
    const struct faults_value *v = value;
    for (unsigned i = 0; i < FAULTS_MARKS; i++)
        a->marked[i] += v->marked[i];
    a->time_ns = v->time_ns > a->time_ns ? v->time_ns : a->time_ns;
}

/* The end of its path, as far as it was kept; "…" for what lies before. */
static bool add_path(struct buf *b, const struct sys_session *s, const struct faults_file *file)
{
    struct faults_name name = {0};
    if (bpf_map_lookup_elem(sys_map(s, "file_names"), file, &name))
        return false;
    unsigned n = 0;
    while (n < FAULTS_NAME_PARTS && name.part[n][0] && strcmp(name.part[n], "/"))
        n++;
    if (n == FAULTS_NAME_PARTS)
        buf_addstr(b, "...");
    while (n-- > 0)
        buf_printf(b, "/%.*s", FAULTS_NAME_BYTES, name.part[n]);
    return b->len > 0;
}

static void name_mapping(const struct sys_session *s, struct table *t, const struct faults_file *file)
{
    struct buf b = BUF_INIT;
    if (!file->inode || !add_path(&b, s, file)) {
        if (file->inode)
            buf_printf(&b, "inode %llu of device %u:%u", (unsigned long long)file->inode, file->device >> 20,
                       file->device & 0xfffff);
        else
            buf_printf(&b, "[%s]", columns[column_of[file->class % FAULTS_MARKS]].name);
    }
    table_text(t, FILE_NAME, buf_str(&b));
    buf_release(&b);
}

static void name_row(struct sys_session *s, struct table *t, const struct faults_key *key, uint64_t time_ns)
{
    uint32_t parts = s->settings.config.parts;
    if (parts & FAULTS_BY_PROCESS)
        table_whole(t, PID, key->pid);
    if (parts & (FAULTS_BY_PROCESS | FAULTS_BY_COMM))
        table_text(t, COMM, key->comm);
    if (parts & FAULTS_BY_PLACE) {
        if (key->in_kernel)
            resolver_kernel_code(s, t, PLACE, key->place);
        else
            resolver_user(s, t, PLACE, key->place, key->pid, time_ns);
    }
    if (parts & FAULTS_BY_STACK) {
        resolver_user_stack(s, t, USER_STACK, key->user_stack, key->pid, time_ns);
        resolver_kernel_stack(s, t, KERNEL_STACK, key->kernel_stack);
    }
    if (parts & FAULTS_BY_FILE)
        name_mapping(s, t, &key->file);
}

static void add_growth(struct sys_session *s, struct table *t, const struct faults_key *key)
{
    struct own *o = s->own;
    struct faults_resident now;
    if (o->growth && !bpf_map_lookup_elem(sys_map(s, "resident"), &key->pid, &now) &&
        !memcmp(now.comm, key->comm, sizeof(now.comm)))
        table_signed(t, GROWTH, growth_since(o->growth, key->pid, &now));
}

static void row(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    const struct faults_value *v = sum;
    struct faults_key whole = {0};
    memcpy(&whole, key, s->settings.part->key_bytes);
    table_row(t);
    name_row(s, t, &whole, v->time_ns);
    table_whole(t, FAULTS, v->marked[FAULTS_MINOR] + v->marked[FAULTS_MAJOR]);
    for (unsigned i = 0; i < FAULTS_MARKS; i++)
        if (v->marked[i] || !columns[column_of[i]].hide_if_empty)
            table_whole(t, column_of[i], v->marked[i]);
    add_growth(s, t, &whole);
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
     sizeof(struct faults_key), BIT(FILE_NAME), 0, .names = BIT(FILE_NAME)},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_option options[] = {
    {"only", "COLUMNS", "count only faults of these columns: major,heap"},
    {"growth", NULL, "also print the growth of each process's resident memory", 1ull << GROWTH},
    {NULL},
};

static const struct sys_counted counted[] = {
    {FAULTS_NAMES_FULL, "name{s} of {a file|files} had no room: {the file is|the files are} shown by number",
     "file_names_lost", false},
    {0, NULL, NULL, false},
};

#define ARGUMENTS "address,regs,error_code"

#define CLASSES                                                                                              \
    (BIT(HEAP) | BIT(STACK) | BIT(ANONYMOUS) | BIT(FILE_PAGES) | BIT(SHARED) | BIT(HUGETLB) | BIT(OTHER))

static const struct sys_without no_tree = {
    "mm_struct", "mm_mt", "which memory it was (heap, stack, file and so on): this requires Linux 6.1",
    CLASSES};

#define NO_KINDS                                                                                             \
    .lacks = "which faults are major, which fail, how long they take; "                                      \
             "memory that is requested in advance (populate, pinned)",                                       \
    .lacking = BIT(MINOR) | BIT(MAJOR) | BIT(ASKED) | BIT(HISTOGRAM), .without = &no_tree

#define BEGINNINGS                                                                                           \
    {"begin_user", "page_fault_user", ARGUMENTS, NULL, 0},                                                   \
    {                                                                                                        \
        "begin_kernel", "page_fault_kernel", ARGUMENTS, NULL, 0                                              \
    }

static const struct sys_attach_method methods[] = {
    {.name = "fexit", .attach = {{.program = "exit_fault"}, BEGINNINGS}},
    {.name = "perf",
     .lacks = "memory that is requested in advance (populate, pinned)",
     .lacking = BIT(ASKED),
     .without = &no_tree,
     .attach = {{.program = "perf_minor", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MIN},
                {.program = "perf_major", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MAJ},
                BEGINNINGS}},
    {.name = "tp_btf",
     NO_KINDS,
     .attach = {{"btf_user", "page_fault_user", ARGUMENTS, NULL, 0},
                {"btf_kernel", "page_fault_kernel", ARGUMENTS, NULL, 0}}},
    {.name = "raw_tp",
     NO_KINDS,
     .attach = {{"raw_user", "page_fault_user", ARGUMENTS, NULL, 0},
                {"raw_kernel", "page_fault_kernel", ARGUMENTS, NULL, 0}}},
    {.name = "tp", NO_KINDS, .attach = {{.program = "tp_user"}, {.program = "tp_kernel"}}},
    {.name = NULL},
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

static const struct sys_measure measure = {
    .doc = "the duration of each fault, without memory that was requested in advance", .column = HISTOGRAM};

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
    .event_ns = 460,
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
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = FAULTS,
    .measure = &measure,
    .container = CONTAINER,
    .parts = parts,
    .options = options,
    .counted = counted,
    .key_bytes = sizeof(struct faults_key),
    .value_bytes = sizeof(struct faults_value),
    .user_stack_at = offsetof(struct faults_key, user_stack),
    .add = add,
    .row = row,
    .ready = ready,
    .release = release,
};
