/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys kpages`: pages of the kernel's page allocator, by who takes them. */
#include "bpf/kpages.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/table/table_merge.h"
#include "sys/names/kernel_caller.h"
#include "sys/kernel_enums.h"
#include "sys/resolver.h"
#include "sys/session.h"
#include "sys/tools/block_attach.h"

enum column {
    FUNCTION,
    SOURCE_FILE,
    DIRECTORY,
    ORDER,
    TYPE,
    PID,
    COMM,
    CONTAINER,
    ALLOCATED,
    ALLOCATIONS,
    FREED,
    FREES,
    FAILURES,
    LIVE,
    LIVE_BLOCKS,
    USE,
    FALLBACKS,
    CGROUP,
    ORDERS,
    TYPES,
    GFP,
    HISTOGRAM,
    KERNEL_STACK,
    USER_STACK
};

#define BIT(column) (1ull << (column))

static const struct table_column columns[] = {
    [FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT},
    [SOURCE_FILE] = {"file", TABLE_PLAIN, TABLE_TEXT},
    [DIRECTORY] = {"directory", TABLE_PLAIN, TABLE_TEXT},
    [ORDER] = {"order", TABLE_PLAIN, TABLE_WHOLE},
    [TYPE] = {"migrate_type", TABLE_PLAIN, TABLE_TEXT},
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [ALLOCATED] = {"allocated", TABLE_BYTES, TABLE_WHOLE},
    [ALLOCATIONS] = {"allocations", TABLE_COUNT, TABLE_WHOLE},
    [FREED] = {"freed", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 2},
    [FREES] = {"frees", TABLE_COUNT, TABLE_WHOLE},
    [FAILURES] = {"failures", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 3},
    [LIVE] = {"live", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true},
    [LIVE_BLOCKS] = {"live_blocks", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 4},
    [USE] = {"use", TABLE_PLAIN, TABLE_TEXT},
    [FALLBACKS] = {"fallbacks", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 3},
    [CGROUP] = {"cgroup", TABLE_PLAIN, TABLE_TEXT},
    [ORDERS] = {"orders", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 5, .merge_words = ' '},
    [TYPES] = {"migrate_types", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 6, .merge_words = ' '},
    [GFP] = {"gfp", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 7, .merge_words = '|'},
    [HISTOGRAM] = {"block_histogram", TABLE_BYTES, TABLE_HISTOGRAM},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

static void release(struct sys_session *s)
{
    if (s->own)
        kernel_enums_release(s->own);
    free(s->own);
    s->own = NULL;
}

static uint64_t bytes_of(uint64_t pages)
{
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int ready(struct sys_session *s, struct error *e)
{
    if (!s->own) {
        s->own = mem_alloc(sizeof(struct kernel_enums));
        kernel_enums_load(s->own, "migratetype", "MIGRATE_");
    }
    *(uint64_t *)sys_variable(s, "page_bytes", sizeof(uint64_t)) = bytes_of(1);
    return block_attach_ready(s, e, "leave out --live");
}

static void add(void *sum, const void *value)
{
    struct kpages_value *a = sum;
    const struct kpages_value *v = value;
    a->allocations += v->allocations;
    a->frees += v->frees;
    a->failures += v->failures;
    a->allocated_pages += v->allocated_pages;
    a->freed_pages += v->freed_pages;
    a->gfp |= v->gfp;
    a->orders |= v->orders;
    a->migrate_types |= v->migrate_types;
    a->time_ns = v->time_ns > a->time_ns ? v->time_ns : a->time_ns;
}

static void add_type_name(const struct kernel_enums *types, struct buf *b, uint32_t type)
{
    if (type < KERNEL_ENUMS_VALUES_MAX && types->names[type])
        buf_addstr(b, types->names[type]);
    else
        buf_printf(b, "%u", type);
}

static uint64_t weigh(const void *value)
{
    return bytes_of(((const struct kpages_value *)value)->allocated_pages);
}

#define OF_CODE (KPAGES_BY_FUNCTION | KPAGES_BY_FILE | KPAGES_BY_DIRECTORY)

static uint32_t code_column(uint32_t parts)
{
    return parts & KPAGES_BY_FUNCTION ? FUNCTION : parts & KPAGES_BY_FILE ? SOURCE_FILE : DIRECTORY;
}

static void name_row(struct sys_session *s, struct table *t, const void *data, uint64_t time_ns)
{
    const struct kpages_key *key = data;
    uint32_t parts = s->settings.config.parts;
    struct buf b = BUF_INIT;
    table_row(t);
    if (parts & KPAGES_BY_ORDER)
        table_whole(t, ORDER, key->order);
    if (parts & KPAGES_BY_TYPE) {
        add_type_name(s->own, &b, key->migrate_type);
        table_text(t, TYPE, buf_str(&b));
    }
    if (parts & KPAGES_BY_PROCESS)
        table_whole(t, PID, key->pid);
    if (parts & (KPAGES_BY_PROCESS | KPAGES_BY_COMM))
        table_text(t, COMM, key->comm);
    if (parts & OF_CODE) {
        kernel_caller_name(s, t, code_column(parts), key->kernel_stack);
    } else if (parts & KPAGES_BY_STACK) {
        resolver_kernel_stack(s, t, KERNEL_STACK, key->kernel_stack);
        resolver_user_stack(s, t, USER_STACK, key->user_stack, key->pid, time_ns);
    }
    buf_release(&b);
}

/* "0 2 9", "unmovable movable": every one that was among the row's. */
static void add_kinds(struct sys_session *s, struct table *t, const struct kpages_value *v)
{
    struct buf orders = BUF_INIT, types = BUF_INIT;
    for (uint32_t i = 0; i < 32; i++) {
        if (v->orders >> i & 1)
            buf_printf(&orders, "%s%u", orders.len ? " " : "", i);
        if (!(v->migrate_types >> i & 1))
            continue;
        buf_addstr(&types, types.len ? " " : "");
        add_type_name(s->own, &types, i);
    }
    if (orders.len)
        table_text(t, ORDERS, buf_str(&orders));
    if (types.len)
        table_text(t, TYPES, buf_str(&types));
    buf_release(&orders);
    buf_release(&types);
}

static void row(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    const struct kpages_value *v = sum;
    name_row(s, t, key, v->time_ns);
    table_whole(t, ALLOCATED, bytes_of(v->allocated_pages));
    table_whole(t, ALLOCATIONS, v->allocations);
    table_whole(t, FREED, bytes_of(v->freed_pages));
    table_whole(t, FREES, v->frees);
    table_whole(t, FAILURES, v->failures);
    add_kinds(s, t, v);
    if (v->allocations || v->failures)
        resolver_gfp(s, t, GFP, v->gfp);
}

/* Many stacks have one function. */
static void rest(struct sys_session *s, struct table *t)
{
    const uint32_t parts = s->settings.config.parts;
    if (!(parts & OF_CODE))
        return;
    table_sort(t, FREED, TABLE_MOST_FIRST); /* the order of rows that allocate as much */
    table_merge(t, BIT(code_column(parts)), ALLOCATED);
}

/* "mm/shmem.c" is in the directory "mm". */
static void name_again(struct table *t, uint32_t row)
{
    const struct table_value *file = table_at(t, row, SOURCE_FILE);
    if (!file->known)
        return;
    const bool unknown = *file->text == '[';
    const char *slash = unknown ? NULL : strrchr(file->text, '/');
    char *text = slash ? mem_strndup(file->text, (size_t)(slash - file->text))
                       : mem_strdup(unknown ? file->text : ".");
    *table_cell(t, row, DIRECTORY) = (struct table_value){.known = true, .text = text};
}

static uint64_t live_bytes(const void *value)
{
    return bytes_of(1ull << (((const struct kpages_live *)value)->order & 31));
}

static const struct sys_live live = {
    .option = "live-blocks",
    .most = 1u << 18,
    .key_at = offsetof(struct kpages_live, key),
    .bytes = live_bytes,
    .bytes_column = LIVE,
    .objects_column = LIVE_BLOCKS,
    .first_column = ALLOCATED,
    .last_column = FAILURES,
    .name = name_row,
};

#define OF_FREES (BIT(FREED) | BIT(FREES)) /* a free does not tell the type of its pages */

static const struct sys_part parts[] = {
    {"stack", "the kernel's stack, see --stacks", KPAGES_BY_STACK, offsetof(struct kpages_key, comm),
     BIT(KERNEL_STACK) | BIT(USER_STACK) | BIT(ORDERS) | BIT(TYPES) | OF_FREES, SYS_STACK_KERNEL,
     .names = BIT(KERNEL_STACK) | BIT(USER_STACK)},
    {"process", "the process that was running", KPAGES_BY_PROCESS, sizeof(struct kpages_key),
     BIT(PID) | BIT(COMM) | BIT(CONTAINER) | BIT(ORDERS) | BIT(TYPES) | OF_FREES, 0,
     .names = BIT(PID) | BIT(COMM), .rows = "kpages_process"},
    {"comm", "the name of that process", KPAGES_BY_COMM, sizeof(struct kpages_key),
     BIT(COMM) | BIT(ORDERS) | BIT(TYPES) | OF_FREES, 0, .names = BIT(COMM)},
    {"function", "the function that uses the page allocator", KPAGES_BY_STACK | KPAGES_BY_FUNCTION,
     offsetof(struct kpages_key, comm), BIT(FUNCTION) | BIT(ORDERS) | BIT(TYPES) | OF_FREES, SYS_STACK_KERNEL,
     .names = BIT(FUNCTION)},
    {"file", "the file of the kernel's source in which that function is", KPAGES_BY_STACK | KPAGES_BY_FILE,
     offsetof(struct kpages_key, comm), BIT(SOURCE_FILE) | BIT(ORDERS) | BIT(TYPES) | OF_FREES,
     SYS_STACK_KERNEL, .source = true, .names = BIT(SOURCE_FILE)},
    {"directory", "that file's directory", KPAGES_BY_STACK | KPAGES_BY_DIRECTORY,
     offsetof(struct kpages_key, comm), BIT(DIRECTORY) | BIT(ORDERS) | BIT(TYPES) | OF_FREES,
     SYS_STACK_KERNEL, .source = true, .names = BIT(DIRECTORY), .made_of = BIT(SOURCE_FILE)},
    {"order", "the size of the block: 2^order pages", KPAGES_BY_ORDER,
     offsetof(struct kpages_key, migrate_type), BIT(ORDER) | BIT(TYPES) | OF_FREES, 0, .names = BIT(ORDER)},
    {"type", "the requested migrate type", KPAGES_BY_TYPE, offsetof(struct kpages_key, kernel_stack),
     BIT(TYPE) | BIT(ORDERS), 0, .names = BIT(TYPE)},
    {"use", "what the pages are for: objects of the slab allocator, one large object, or other", 0, 0,
     BIT(USE), .recorded = true, .names = BIT(USE)},
    {"gfp", "the flags of the allocation", 0, 0, BIT(GFP) | OF_FREES, .recorded = true, .names = BIT(GFP)},
    {"cgroup", "the process's control group", 0, 0, BIT(CGROUP) | OF_FREES, .recorded = true,
     .names = BIT(CGROUP), .rows = "kpages_process"},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_option options[] = {
    {"live", NULL, "follow each block until it is freed, and show live memory",
     1u << LIVE | 1u << LIVE_BLOCKS},
    {"live-blocks", "N", "follow at most N blocks (256K); implies --live", 1u << LIVE | 1u << LIVE_BLOCKS},
    {NULL},
};

static const struct sys_counted counted[] = {
    {KPAGES_FAILED, "allocation{s} failed", "failed_allocations", false},
    {KPAGES_REUSED, "live block{s} whose pages returned: {its|their} free had no event",
     "frees_without_event", false},
    {KPAGES_FREED_BEFORE,
     "freed page{s} whose allocation was not followed: from before the start, or without an event",
     "freed_pages_of_unknown", false},
    {KPAGES_FREED_IN_PARTS, "free{s} of a part of a block", "frees_in_parts", false},
    {0, NULL, NULL, false},
};

static const struct sys_attach_method methods[] = {
    {.name = "raw_tp", .attach = SYS_ATTACH(BLOCK_PROGRAMS_BY_POSITION)},
    {.name = "tp", .attach = SYS_ATTACH(BLOCK_PROGRAMS_BY_NAME)},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys kpages --duration 10s",
    "show the kernel stacks that allocate and free pages",
    "allium sys kpages --by order --interval 1s",
    "show the orders of blocks every second",
    "allium sys kpages --live --where 'live>1M' -- make",
    "show the pages that a command left in the kernel, by stack",
    NULL,
};

static const struct sys_measure measure = {.doc = "the size of each allocated block", .column = HISTOGRAM};

static const char *const questions[] = {
    "Which code of the kernel allocates pages, and in blocks of which order?",
    "Which code allocated the pages that are not freed? (--live)",
    "Which requests for large blocks fail?",
    "For which process does the kernel allocate pages? (--by process)",
    "Which part of the kernel's source takes the pages? (--by directory)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "a page that a fault allocates",
    .event_ns = 2500,
    .measured = "rows by kernel stack; raw_tp, Linux 6.18 in a virtual machine",
    .unseen = "pages that are allocated in bulk: by vmalloc where no cgroup is charged, and by some network "
              "drivers",
};

SYS_OBJECT_OF(kpages);

const struct sys_tool sys_kpages = {
    .name = "kpages",
    .summary = "show kernel page allocations by stack, function, file, process, order or migrate type",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(kpages),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = ALLOCATED,
    .measure = &measure,
    .container = CONTAINER,
    .parts = parts,
    .options = options,
    .counted = counted,
    .key_bytes = sizeof(struct kpages_key),
    .value_bytes = sizeof(struct kpages_value),
    .user_stack_at = offsetof(struct kpages_key, user_stack),
    .add = add,
    .weigh = weigh,
    .row = row,
    .live = &live,
    .reads_traces = true,
    .marks_helpers = true,
    .directory = DIRECTORY,
    .name_again = name_again,
    .rest = rest,
    .recorded = BIT(USE) | BIT(FALLBACKS) | BIT(CGROUP),
    .ready = ready,
    .release = release,
};
