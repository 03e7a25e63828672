/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys mmapsnoop`: who maps memory, and how. */
#include "bpf/mmapsnoop.h"

#include <stddef.h>
#include <string.h>

#include "sys/call_words.h"
#include "sys/event_columns.h"
#include "sys/mapping_text.h"
#include "sys/resolver.h"
#include "sys/tools/call_events.h"

static const char *const kinds[MMAPSNOOP_KINDS] = {
#define NAME(name, number) [MMAPSNOOP_##name] = #name,
    MMAPSNOOP_CALLS(NAME)
#undef NAME
        [MMAPSNOOP_exec] = "exec",
    [MMAPSNOOP_exit] = "exit"};

static const char *kind_of(uint32_t call)
{
    return call < MMAPSNOOP_KINDS ? kinds[call] : NULL;
}

static void set_mapping(const struct sys_session *s, struct table *t, uint32_t column,
                        const struct process_mapping *m)
{
    struct buf b = BUF_INIT;
    mapping_text_add(s, &b, m);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

/* ---- events ---- */

enum column {
    CALL = EVENT_COLUMNS_COLUMNS,
    ERROR,
    ADDRESS,
    BYTES,
    MAPPED,
    PROT,
    FLAGS,
    OFFSET,
    OLD_ADDRESS,
    OLD_BYTES,
    FD,
    SEGMENT,
    ADDED,
    REMOVED,
    DURATION,
    KERNEL_STACK,
    USER_STACK
};

static const struct table_column columns[] = {
    EVENT_COLUMNS_HEAD,
    [CALL] = {"call", TABLE_PLAIN, TABLE_TEXT, .width = 16},
    [ERROR] = {"error", TABLE_PLAIN, TABLE_TEXT, .width = 7},
    [ADDRESS] = {"address", TABLE_PLAIN, TABLE_ADDRESS, .drop_rank = 4},
    [BYTES] = {"size", TABLE_BYTES, TABLE_WHOLE},
    [MAPPED] = {"mapped", TABLE_PLAIN, TABLE_TEXT, .shrinkable = true},
    [PROT] = {"prot", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 2},
    [FLAGS] = {"flags", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 1},
    [OFFSET] = {"offset", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 6},
    [OLD_ADDRESS] = {"old_address", TABLE_PLAIN, TABLE_ADDRESS, .drop_rank = 11},
    [OLD_BYTES] = {"old_size", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 10},
    [FD] = {"fd", TABLE_PLAIN, TABLE_SIGNED, .drop_rank = 12},
    [SEGMENT] = {"shmid", TABLE_PLAIN, TABLE_SIGNED, .drop_rank = 12},
    [ADDED] = {"added", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 5},
    [REMOVED] = {"removed", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 5},
    [DURATION] = {"duration", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 3},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

/* FLAGS means something else for each call. */
static void set_flags(struct table *t, const struct mmapsnoop_change *c)
{
    static const struct call_word mremap[] = {
        {1, "MREMAP_MAYMOVE"}, {2, "MREMAP_FIXED"}, {4, "MREMAP_DONTUNMAP"}, {0, NULL}};
    static const struct call_word shmat[] = {
        {010000, "SHM_RDONLY"}, {020000, "SHM_RND"}, {040000, "SHM_REMAP"}, {0100000, "SHM_EXEC"}, {0, NULL}};
    static const struct call_word mlock2[] = {{1, "MLOCK_ONFAULT"}, {0, NULL}};
    static const struct call_word mlockall[] = {
        {1, "MCL_CURRENT"}, {2, "MCL_FUTURE"}, {4, "MCL_ONFAULT"}, {0, NULL}};
    struct buf b = BUF_INIT;
    switch (c->call) {
    case MMAPSNOOP_mmap:
    case MMAPSNOOP_remap_file_pages:
        call_words_mmap(&b, c->flags);
        break;
    case MMAPSNOOP_madvise:
    case MMAPSNOOP_process_madvise:
        call_words_advice(&b, c->flags);
        break;
    case MMAPSNOOP_mremap:
        call_words_add(&b, c->flags, mremap);
        break;
    case MMAPSNOOP_shmat:
        call_words_add(&b, c->flags, shmat);
        break;
    case MMAPSNOOP_mlock2:
        call_words_add(&b, c->flags, mlock2);
        break;
    case MMAPSNOOP_mlockall:
        call_words_add(&b, c->flags, mlockall);
        break;
    default:
        break;
    }
    if (b.len)
        table_text(t, FLAGS, buf_str(&b));
    buf_release(&b);
}

static bool has_prot(uint32_t call)
{
    return call == MMAPSNOOP_mmap || call == MMAPSNOOP_mprotect || call == MMAPSNOOP_pkey_mprotect;
}

static bool has_range(uint32_t call)
{
    return call < MMAPSNOOP_exec && call != MMAPSNOOP_mlockall && call != MMAPSNOOP_munlockall;
}

static void set_arguments(struct table *t, const struct mmapsnoop_change *c)
{
    if (has_range(c->call)) {
        if (c->call != MMAPSNOOP_process_madvise)
            table_whole(t, ADDRESS, c->address);
        if (c->bytes || c->call != MMAPSNOOP_shmdt)
            table_whole(t, BYTES, c->bytes);
    }
    if (has_prot(c->call)) {
        struct buf b = BUF_INIT;
        call_words_prot(&b, c->prot);
        table_text(t, PROT, buf_str(&b));
        buf_release(&b);
    }
    if ((c->call == MMAPSNOOP_mmap && c->fd >= 0) || c->call == MMAPSNOOP_remap_file_pages)
        table_whole(t, OFFSET, c->offset);
    if (c->call == MMAPSNOOP_mremap || c->call == MMAPSNOOP_brk)
        table_whole(t, OLD_ADDRESS, c->old_address);
    if (c->call == MMAPSNOOP_mremap)
        table_whole(t, OLD_BYTES, c->old_bytes);
    if ((c->call == MMAPSNOOP_mmap && c->fd >= 0) || c->call == MMAPSNOOP_process_madvise)
        table_signed(t, FD, c->fd);
    if (c->call == MMAPSNOOP_shmat)
        table_signed(t, SEGMENT, c->fd);
}

static void event(struct sys_session *s, struct table *t, const void *data, size_t bytes)
{
    const struct mmapsnoop_event *e = data;
    const struct mmapsnoop_change *c = &e->change;
    const bool is_call = c->call < MMAPSNOOP_exec;
    (void)bytes;
    event_columns_row(s, t, &e->head);
    table_text(t, CALL, kind_of(c->call));
    if (is_call) {
        table_text(t, ERROR, call_words_error(c->result));
        if (e->duration_ns) /* 0: its entry was not seen */
            table_whole(t, DURATION, e->duration_ns);
    }
    set_arguments(t, c);
    set_flags(t, c);
    if (c->mapping.device || c->mapping.class < MAPPING_OTHER)
        set_mapping(s, t, MAPPED, &c->mapping);
    if (c->mapped_bytes || !is_call)
        table_whole(t, ADDED, c->mapped_bytes);
    if (c->unmapped_bytes)
        table_whole(t, REMOVED, c->unmapped_bytes);
    resolver_kernel_stack(s, t, KERNEL_STACK, e->head.kernel_stack);
    resolver_user_stack(s, t, USER_STACK, e->head.user_stack, e->head.task.pid, e->head.time_ns);
}

/* ---- rows ---- */

enum row_column {
    R_PID,
    R_COMM,
    R_CONTAINER,
    R_CALL,
    R_MAPPED,
    R_CALLS,
    R_RATE,
    R_FAILED,
    R_ADDED,
    R_REMOVED,
    R_NET,
    R_DURATION,
    R_HISTOGRAM,
    R_USER_STACK,
    R_KERNEL_STACK
};

#define BIT(column) (1ull << (column))

static const struct table_column row_columns[] = {
    [R_PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [R_COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [R_CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [R_CALL] = {"call", TABLE_PLAIN, TABLE_TEXT},
    [R_MAPPED] = {"mapped", TABLE_PLAIN, TABLE_TEXT},
    [R_CALLS] = {"calls", TABLE_COUNT, TABLE_WHOLE},
    [R_RATE] = {"calls_per_s", TABLE_PLAIN, TABLE_REAL, .header = "calls/s", .drop_rank = 3},
    [R_FAILED] = {"failed", TABLE_COUNT, TABLE_WHOLE},
    [R_ADDED] = {"added", TABLE_BYTES, TABLE_WHOLE},
    [R_REMOVED] = {"removed", TABLE_BYTES, TABLE_WHOLE},
    [R_NET] = {"net", TABLE_BYTES, TABLE_SIGNED},
    [R_DURATION] = {"duration", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 2},
    [R_HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
    [R_USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
    [R_KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
};

static void add(void *sum, const void *value)
{
    struct mmapsnoop_sum *a = sum;
    const struct mmapsnoop_sum *v = value;
    a->calls += v->calls;
    a->failed += v->failed;
    a->mapped_bytes += v->mapped_bytes;
    a->unmapped_bytes += v->unmapped_bytes;
    a->duration_ns += v->duration_ns;
    a->time_ns = v->time_ns > a->time_ns ? v->time_ns : a->time_ns;
}

static void row(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    const struct mmapsnoop_sum *v = sum;
    const uint32_t parts = s->settings.config.parts;
    struct mmapsnoop_key whole = {.pid = 0};
    memcpy(&whole, key, s->settings.part->key_bytes);
    table_row(t);
    if (parts & MMAPSNOOP_BY_PROCESS)
        table_whole(t, R_PID, whole.pid);
    if (parts & (MMAPSNOOP_BY_PROCESS | MMAPSNOOP_BY_COMM))
        table_text(t, R_COMM, whole.comm);
    if (parts & MMAPSNOOP_BY_CALL)
        table_text(t, R_CALL, kind_of(whole.call));
    if (parts & MMAPSNOOP_BY_FILE)
        set_mapping(s, t, R_MAPPED, &whole.mapping);
    if (parts & MMAPSNOOP_BY_STACK) {
        resolver_user_stack(s, t, R_USER_STACK, whole.user_stack, whole.pid, v->time_ns);
        resolver_kernel_stack(s, t, R_KERNEL_STACK, whole.kernel_stack);
    }
    table_whole(t, R_CALLS, v->calls);
    if (s->rows_ns)
        table_real(t, R_RATE, 1e9 * (double)v->calls / (double)s->rows_ns);
    table_whole(t, R_FAILED, v->failed);
    table_whole(t, R_ADDED, v->mapped_bytes);
    table_whole(t, R_REMOVED, v->unmapped_bytes);
    table_signed(t, R_NET, (int64_t)(v->mapped_bytes - v->unmapped_bytes));
    table_whole(t, R_DURATION, v->duration_ns);
}

#define PROCESS (BIT(R_PID) | BIT(R_COMM) | BIT(R_CONTAINER))
#define STACKS  (BIT(R_USER_STACK) | BIT(R_KERNEL_STACK))

static const struct sys_part parts[] = {
    {"process", "the process", MMAPSNOOP_IN_ROWS | MMAPSNOOP_BY_PROCESS, offsetof(struct mmapsnoop_key, call),
     PROCESS, 0, .names = BIT(R_PID) | BIT(R_COMM)},
    {"comm", "the name of the process", MMAPSNOOP_IN_ROWS | MMAPSNOOP_BY_COMM,
     offsetof(struct mmapsnoop_key, pid), BIT(R_COMM), 0, .names = BIT(R_COMM)},
    {"call", "the system call", MMAPSNOOP_IN_ROWS | MMAPSNOOP_BY_CALL,
     offsetof(struct mmapsnoop_key, mapping), BIT(R_CALL), 0, .names = BIT(R_CALL)},
    {"file", "the file that is mapped, or the kind of other memory", MMAPSNOOP_IN_ROWS | MMAPSNOOP_BY_FILE,
     offsetof(struct mmapsnoop_key, kernel_stack), BIT(R_MAPPED), 0, .names = BIT(R_MAPPED)},
    {"stack", "the whole stack, see --stacks, and its process",
     MMAPSNOOP_IN_ROWS | MMAPSNOOP_BY_PROCESS | MMAPSNOOP_BY_STACK, sizeof(struct mmapsnoop_key),
     PROCESS | STACKS, SYS_STACK_USER, .names = BIT(R_PID) | BIT(R_COMM) | STACKS},
    {NULL, NULL, 0, 0, 0, 0},
};

/* ---- both ---- */

static int ready(struct sys_session *s, struct error *e)
{
    uint32_t *asked = sys_variable(s, "asked", sizeof(*asked));
    (void)e;
    if (!sys_option(s, "brk"))
        *asked &= ~(1u << MMAPSNOOP_brk);
    return 0;
}

static const struct sys_option options[] = {
    {"brk", NULL, "also show calls of brk(), which moves the end of the heap", 0},
    {"summary", NULL, "print a row for each process instead of each event: see --summary --help", 0},
    {NULL},
};

static const struct sys_counted counted[] = {CALL_COUNTED, PATH_COUNTED, {0, NULL, NULL, false}};

#define ENTER_ARGUMENTS "regs,id"
#define EXIT_ARGUMENTS  "regs,ret"

static const struct sys_without no_tree = {"mm_struct", "mm_mt",
                                           "MAPPED of most calls: this requires Linux 6.1", 0};

#define WAY(way, with_enter, with_exit)                                                                      \
    .without = &no_tree, .attach = SYS_ATTACH({#way "_enter", with_enter, ENTER_ARGUMENTS, NULL},            \
                                              {#way "_exit", with_exit, EXIT_ARGUMENTS, NULL},               \
                                              {.program = #way "_exec"}, {.program = #way "_ended"})

static const struct sys_attach_method methods[] = {
    {.name = "tp_btf", WAY(btf, "sys_enter", "sys_exit")},
    {.name = "raw_tp", WAY(raw, "sys_enter", "sys_exit")},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys mmapsnoop -p 4711",
    "show each call by which a process maps, unmaps or protects memory, with its result",
    "allium sys mmapsnoop --where 'error:*'",
    "show calls that failed",
    "allium sys mmapsnoop --summary --interval 1s",
    "show every second which processes map memory, how much, and how often",
    "allium sys mmapsnoop --by stack --comm server --folded -- ./server > mapped.folded",
    "write the stacks of the calls by which a program changes its address space",
    NULL,
};

static const struct sys_measure measure = {
    .doc = "the duration of each call", .summary = event_columns_durations, .columns = 1ull << DURATION};
static const struct sys_measure row_measure = {.doc = "the duration of the calls", .column = R_HISTOGRAM};

static const char *const questions[] = {
    "Which processes map and unmap memory, how, and how long does each call take?",
    "Which mappings fail, and why? (--where 'error:*')",
    "Which process maps most, and keeps it? (--summary)",
    "Which code maps the memory? (--stacks user)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "a call",
    .event_ns = 940,
    .measured = "with the path of the file, no stacks; tp_btf, Linux 6.18 in a busy virtual machine",
    .unseen = "what io_uring does to an address space, and mappings that faults and the kernel itself change",
};

SYS_OBJECT_OF(mmapsnoop);

static const struct sys_tool sums = {
    .name = "mmapsnoop_summary",
    .summary = "add up changes of address spaces by process, name, call, file or stack",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(mmapsnoop),
    .methods = methods,
    .columns = row_columns,
    .n_columns = sizeof(row_columns) / sizeof(*row_columns),
    .weight = R_CALLS,
    .measure = &row_measure,
    .container = R_CONTAINER,
    .parts = parts,
    .options = options,
    .counted = counted,
    .key_bytes = sizeof(struct mmapsnoop_key),
    .value_bytes = sizeof(struct mmapsnoop_sum),
    .user_stack_at = offsetof(struct mmapsnoop_key, user_stack),
    .add = add,
    .row = row,
    .ready = ready,
    .count_rest = call_events_count_rest,
};

/* Rows have other columns and options than events. */
static const struct sys_tool *variant(int argc, char **argv)
{
    const bool rows = sys_tool_is_given(argc, argv, "summary", 0) || sys_tool_is_given(argc, argv, "by", 0);
    return rows ? &sums : &sys_mmapsnoop;
}

const struct sys_tool sys_mmapsnoop = {
    .name = "mmapsnoop",
    .summary = "show how address spaces change: mmap, munmap, mprotect, madvise and the like",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(mmapsnoop),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = BYTES,
    .measure = &measure,
    .options = options,
    .counted = counted,
    .ring_bytes = 1u << 22,
    .event = event,
    .ready = ready,
    .count_rest = call_events_count_rest,
    .variant = variant,
};
