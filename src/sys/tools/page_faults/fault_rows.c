/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/page_faults/fault_rows.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/buf.h"
#include "sys/mapping_text.h"
#include "sys/resolver.h"

const struct table_column fault_rows_columns[FAULT_COLUMNS] = {
    [C_PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [C_COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [C_CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [C_PLACE] = {"place", TABLE_PLAIN, TABLE_TEXT},
    [C_KIND] = {"kind", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 2},
    [C_MAPPED] = {"mapped", TABLE_PLAIN, TABLE_TEXT, .shrinkable = true},
    [C_DEVICE] = {"device", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 7},
    [C_INODE] = {"inode", TABLE_PLAIN, TABLE_WHOLE, .drop_rank = 7},
    [C_FAULTS] = {"faults", TABLE_COUNT, TABLE_WHOLE},
    [C_MINOR] = {"minor", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 9},
    [C_MAJOR] = {"major", TABLE_COUNT, TABLE_WHOLE},
    [C_BROUGHT_IN] = {"brought_in_pages", TABLE_COUNT, TABLE_WHOLE, .header = "brought in", .drop_rank = 2},
    [C_READ_AHEAD] = {"read_ahead_pages", TABLE_COUNT, TABLE_WHOLE, .header = "read ahead", .drop_rank = 1},
    [C_USER] = {"user", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 8},
    [C_KERNEL] = {"kernel", TABLE_COUNT, TABLE_WHOLE},
    [C_ASKED] = {"asked", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 7},
    [C_READ] = {"read", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 5},
    [C_WRITE] = {"write", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 4},
    [C_EXECUTE] = {"execute", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 6},
    [C_ACCESS_UNKNOWN] = {"access_unknown", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 11},
    [C_HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
    [C_USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
    [C_KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [C_CLASS + MAPPING_HEAP] = {"heap", TABLE_COUNT, TABLE_WHOLE},
    [C_CLASS + MAPPING_STACK] = {"stack", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 2},
    [C_CLASS + MAPPING_ANONYMOUS] = {"anonymous", TABLE_COUNT, TABLE_WHOLE},
    [C_CLASS + MAPPING_FILE] = {"file", TABLE_COUNT, TABLE_WHOLE},
    [C_CLASS + MAPPING_SHARED] = {"shared", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 1},
    [C_CLASS + MAPPING_HUGETLB] = {"hugetlb", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 3},
    [C_CLASS + MAPPING_OTHER] = {"other", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 10},
    [C_CLASS + MAPPING_UNKNOWN] = {"class_unknown", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true,
                                   .drop_rank = 12},
    [C_GROWTH] = {"growth", TABLE_BYTES, TABLE_SIGNED, .hide_if_empty = true},
};

/* Returns a mark's column, which is also its word in --only. */
static unsigned column_of(unsigned mark)
{
    static const unsigned char columns[FAULTS_CLASS] = {
        [FAULTS_MINOR] = C_MINOR,   [FAULTS_MAJOR] = C_MAJOR,     [FAULTS_USER] = C_USER,
        [FAULTS_KERNEL] = C_KERNEL, [FAULTS_ASKED] = C_ASKED,     [FAULTS_READ] = C_READ,
        [FAULTS_WRITE] = C_WRITE,   [FAULTS_EXECUTE] = C_EXECUTE, [FAULTS_ACCESS_UNKNOWN] = C_ACCESS_UNKNOWN,
    };
    return mark < FAULTS_CLASS ? columns[mark] : C_CLASS + mark - FAULTS_CLASS;
}

static int mark_of(const char *word, size_t len)
{
    for (int i = 0; i < FAULTS_MARKS; i++) {
        const char *name = fault_rows_columns[column_of((unsigned)i)].name;
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
        if (mark >= 0 && s->lacking & FAULT_BIT(column_of((unsigned)mark)))
            return error_set(e, EOPNOTSUPP, "--only %.*s: this attach method cannot tell which faults are %s",
                             (int)len, at, fault_rows_columns[column_of((unsigned)mark)].name);
        at += len + (at[len] == ',');
    }
    if (s->settings.part->bits & FAULTS_BY_FILE && s->lacking & FAULT_BIT(C_MAPPED))
        return error_set(e, EOPNOTSUPP,
                         "--by %s: this attach method cannot see mappings; before Linux 6.1 no method can",
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

static void load(struct sys_session *s, const char *program, bool wanted)
{
    bpf_program__set_autoload(bpf_object__find_program_by_name(s->object, program), wanted);
}

int fault_rows_ready(struct sys_session *s, bool growth, struct error *e)
{
    const char *only = sys_option(s, "only");
    uint32_t *wanted = sys_variable(s, "only", sizeof(*wanted));
    const bool by_file = s->settings.part->bits & FAULTS_BY_FILE, fexit = is_loaded(s, "exit_fault");
    if (only && parse_only(only, wanted, e))
        return -EINVAL;
    int error = check_method(s, only, e);
    if (error)
        return error;
    if (fexit) { /* its end tells all but since when it is under way */
        load(s, "begin_user", s->settings.config.histograms);
        load(s, "begin_kernel", s->settings.config.histograms);
        load(s, "enter_fault", by_file);
    }
    if (is_loaded(s, "add_pages"))
        load(s, "add_pages", by_file);
    if (!is_loaded(s, "begin_user"))
        shrink(s, "begun");
    if (!is_loaded(s, "add_pages"))
        shrink(s, "reading");
    if (!by_file)
        shrink(s, "paths");
    if (!growth)
        shrink(s, "resident");
    load(s, "tp_resident", growth);
    return 0;
}

void fault_rows_add(void *sum, const void *value)
{
    struct faults_value *a = sum;
    const struct faults_value *v = value;
    for (unsigned i = 0; i < FAULTS_MARKS; i++)
        a->marked[i] += v->marked[i];
    a->brought_in += v->brought_in;
    a->read_ahead += v->read_ahead;
    a->time_ns = v->time_ns > a->time_ns ? v->time_ns : a->time_ns;
}

static void show_mapping(const struct sys_session *s, struct table *t, const struct process_mapping *m,
                         const struct faults_value *v)
{
    struct buf b = BUF_INIT;
    mapping_text_add(s, &b, m);
    table_text(t, C_MAPPED, buf_str(&b));
    table_text(t, C_KIND, mapping_text_kind(s, m));
    if (m->device) {
        buf_reset(&b);
        buf_printf(&b, "%u:%u", m->device >> 20, m->device & 0xfffff);
        table_text(t, C_DEVICE, buf_str(&b));
        table_whole(t, C_INODE, m->inode);
    }
    if (m->class == MAPPING_FILE) {
        table_whole(t, C_BROUGHT_IN, v->brought_in);
        table_whole(t, C_READ_AHEAD, v->read_ahead);
    }
    buf_release(&b);
}

static void show_key(struct sys_session *s, struct table *t, const struct faults_key *key,
                     const struct faults_value *v)
{
    uint32_t parts = s->settings.config.parts;
    if (parts & FAULTS_BY_PROCESS)
        table_whole(t, C_PID, key->pid);
    if (parts & (FAULTS_BY_PROCESS | FAULTS_BY_COMM))
        table_text(t, C_COMM, key->comm);
    if (parts & FAULTS_BY_PLACE) {
        if (key->in_kernel)
            resolver_kernel_code(s, t, C_PLACE, key->place);
        else
            resolver_user(s, t, C_PLACE, key->place, key->pid, v->time_ns);
    }
    if (parts & FAULTS_BY_STACK) {
        resolver_user_stack(s, t, C_USER_STACK, key->user_stack, key->pid, v->time_ns);
        resolver_kernel_stack(s, t, C_KERNEL_STACK, key->kernel_stack);
    }
    if (parts & FAULTS_BY_FILE)
        show_mapping(s, t, &key->file, v);
}

struct faults_key fault_rows_key(const struct sys_session *s, const void *key)
{
    struct faults_key whole = {0};
    memcpy(&whole, key, s->settings.part->key_bytes);
    return whole;
}

void fault_rows_show(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    const struct faults_value *v = sum;
    const struct faults_key whole = fault_rows_key(s, key);
    table_row(t);
    show_key(s, t, &whole, v);
    table_whole(t, C_FAULTS, v->marked[FAULTS_MINOR] + v->marked[FAULTS_MAJOR]);
    for (unsigned i = 0; i < FAULTS_MARKS; i++) {
        const unsigned column = column_of(i);
        if (column < t->n_columns && (v->marked[i] || !fault_rows_columns[column].hide_if_empty))
            table_whole(t, column, v->marked[i]);
    }
}

const struct sys_counted fault_rows_counted[] = {
    PATH_COUNTED,
    {FAULTS_PAGES_UNKNOWN,
     "fault{s} had begun before the start: the pages that {it|they} brought in are not known",
     "pages_unknown", false},
    {0, NULL, NULL, false},
};

#define ARGUMENTS "address,regs,error_code"

/* The mapping, and all classes but the one that is not known. */
#define CLASSES (FAULT_BIT(C_MAPPED) | (FAULT_BIT(C_CLASS + MAPPING_UNKNOWN) - FAULT_BIT(C_CLASS)))

static const struct sys_without no_tree = {
    "mm_struct", "mm_mt", "which memory it was (heap, stack, file and so on): this requires Linux 6.1",
    CLASSES};

#define NO_KINDS                                                                                             \
    .lacks = "which faults are major, which fail, how long they take; "                                      \
             "memory that is requested in advance (populate, pinned); which pages of files are brought in",  \
    .lacking = FAULT_BIT(C_MINOR) | FAULT_BIT(C_MAJOR) | FAULT_BIT(C_ASKED) | FAULT_BIT(C_HISTOGRAM) |       \
               FAULT_BIT(C_BROUGHT_IN) | FAULT_BIT(C_READ_AHEAD),                                            \
    .without = &no_tree

#define BEGINNINGS                                                                                           \
    {"begin_user", "page_fault_user", ARGUMENTS, NULL, 0},                                                   \
    {                                                                                                        \
        "begin_kernel", "page_fault_kernel", ARGUMENTS, NULL, 0                                              \
    }

/* Before 5.16 it has a page: but then no mapping is known, and there are no rows by file. */
#define PAGES                                                                                                \
    {                                                                                                        \
        "add_pages", "mm_filemap_add_to_page_cache", "folio", "folio", 0                                     \
    }

const struct sys_attach_method fault_rows_methods[] = {
    {.name = "fexit",
     .attach = SYS_ATTACH({.program = "exit_fault"}, {.program = "enter_fault"}, BEGINNINGS, PAGES)},
    {.name = "perf",
     .lacks = "memory that is requested in advance (populate, pinned)",
     .lacking = FAULT_BIT(C_ASKED),
     .without = &no_tree,
     .attach = SYS_ATTACH({.program = "perf_minor", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MIN},
                          {.program = "perf_major", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MAJ},
                          BEGINNINGS, PAGES)},
    {.name = "tp_btf",
     NO_KINDS,
     .attach = SYS_ATTACH({"btf_user", "page_fault_user", ARGUMENTS, NULL, 0},
                          {"btf_kernel", "page_fault_kernel", ARGUMENTS, NULL, 0})},
    {.name = "raw_tp",
     NO_KINDS,
     .attach = SYS_ATTACH({"raw_user", "page_fault_user", ARGUMENTS, NULL, 0},
                          {"raw_kernel", "page_fault_kernel", ARGUMENTS, NULL, 0})},
    {.name = "tp", NO_KINDS, .attach = SYS_ATTACH({.program = "tp_user"}, {.program = "tp_kernel"})},
    {.name = NULL},
};

const struct sys_measure fault_rows_measure = {
    .doc = "the duration of each fault, without memory that was requested in advance", .column = C_HISTOGRAM};
